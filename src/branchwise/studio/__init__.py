"""Growing a tree by hand: sessions, the page, its server and the widget."""
