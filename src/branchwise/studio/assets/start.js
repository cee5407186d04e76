// The page of the local server: the studio in the body, its messages over HTTP.

import { mount } from "./studio.js";
import { ask } from "./transport.js";

mount(document.body, ask);
