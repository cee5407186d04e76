// Messages to the local server. Other hosts have an `ask` of their own.

/** Send a message and return its result; an error of the server is thrown, with the
 * parameter that it is about. A table to load is given as { file }. */
export async function ask(method, args = {}) {
  const request = args.file ? upload(args.file) : message(method, args);
  let answer;
  try {
    const response = await request;
    answer = await response.json();
  } catch {
    throw new Error("The studio does not answer: start it again with branchwise studio.");
  }
  if (!answer.error) return answer.result;
  throw Object.assign(new Error(answer.error.message), { parameter: answer.error.parameter });
}

function message(method, args) {
  const headers = { "Content-Type": "application/json" };
  return fetch("api", { method: "POST", headers, body: JSON.stringify({ method, args }) });
}

function upload(file) {
  const headers = {
    "Content-Type": "application/octet-stream",
    "X-File-Name": encodeURIComponent(file.name),
  };
  return fetch("upload", { method: "POST", headers, body: file });
}
