/* The judge: Pyodide with the prover and the checker, in a thread of its own. A message
   {id, request} is answered by {id, answer} or {id, failed}; {status} tells how the start goes. */
import { loadPyodide } from "./pyodide.mjs";

const here = new URL("./", import.meta.url).href;

async function fetched(name) {
  const response = await fetch(here + name);
  if (!response.ok) throw new Error(`${name} cannot be loaded (${response.status})`);
  return response;
}

async function archives() {
  const names = await (await fetched("files.json")).json();
  const contents = Object.entries(names).map(async ([name, file]) => [
    name, new Uint8Array(await (await fetched(file)).arrayBuffer()),
  ]);
  return Object.fromEntries(await Promise.all(contents));
}

async function start() {
  postMessage({ status: "Starting Python in this page …" });
  const loading = archives();
  loading.catch(() => {}); // reported below
  const python = await loadPyodide({ indexURL: here, packageBaseUrl: here });
  const { libraries, prover, otimes } = await loading;
  postMessage({ status: "Loading the judge …" });
  python.FS.writeFile("/libraries.zip", libraries); // modules are read from it when imported
  python.runPython("import sys; sys.path.append('/libraries.zip')");
  python.unpackArchive(prover, "zip");
  python.unpackArchive(otimes, "zip");
  const answers = python.pyimport("answers");
  return (request) => answers.answer(request);
}

const started = start();
started.catch(() => {});

onmessage = async ({ data: { id, request } }) => {
  try {
    const answer = await started;
    postMessage({ status: "Working …" });
    postMessage({ id, answer: answer(request) });
  } catch (error) {
    postMessage({ id, failed: String(error.message || error) });
  }
};
