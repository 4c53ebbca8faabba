/* The judge: Pyodide with the prover and the checker, in a thread of its own. A message
   {id, request} is answered by {id, answer} or {id, failed}; {status} tells how the start goes. */
import { loadPyodide } from "./pyodide.mjs";

const here = new URL("./", import.meta.url).href;

async function fetched(name) {
  const response = await fetch(here + name);
  if (!response.ok) throw new Error(`${name} cannot be loaded (${response.status})`);
  return response;
}

async function unpacked(file) {
  const stream = (await fetched(file)).body.pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/* Python as it was when the judge had been imported: the memory of a build, put in its place. */
async function remembered(memory) {
  const createPyodideModule = async (settings) => {
    const { default: make } = await import("./pyodide.asm.mjs");
    const made = await make(settings);
    const bytes = await memory;
    if (made.HEAP8.length < bytes.length) made.growMemory(bytes.length);
    return made;
  };
  return loadPyodide({
    indexURL: here, packageBaseUrl: here, _loadSnapshot: memory, createPyodideModule,
  });
}

/* The files of all modules: those that the memory was made of, and those that were not imported. */
async function withSources(python, names) {
  const contents = ["libraries", "prover", "otimes"].map(async (name) =>
    new Uint8Array(await (await fetched(names[name])).arrayBuffer()));
  const [libraries, prover, otimes] = await Promise.all(contents);
  python.FS.writeFile("/libraries.zip", libraries); // modules are read from it when imported
  python.unpackArchive(prover, "zip");
  python.unpackArchive(otimes, "zip");
  python.runPython("import importlib, sys; importlib.invalidate_caches()");
}

async function imported(names) {
  postMessage({ status: "Loading the judge …" });
  const python = await loadPyodide({ indexURL: here, packageBaseUrl: here });
  await withSources(python, names);
  python.runPython("sys.path.append('/libraries.zip')");
  return python;
}

/* A function that answers a request. A module that is missing in the memory is fetched once. */
async function start() {
  postMessage({ status: "Starting Python in this page …" });
  const names = await (await fetched("files.json")).json();
  let sources = null;
  const python = await remembered(unpacked(names.memory)).catch(() => {
    sources = Promise.resolve();
    return imported(names);
  });
  const answers = python.pyimport("answers");
  return async (request) => {
    try {
      return answers.answer(request);
    } catch (error) {
      if (sources) throw error;
      sources = withSources(python, names);
      await sources;
      return answers.answer(request);
    }
  };
}

const started = start();
started.catch(() => {});

onmessage = async ({ data: { id, request } }) => {
  try {
    const answer = await started;
    postMessage({ status: "Working …" });
    postMessage({ id, answer: await answer(request) });
  } catch (error) {
    postMessage({ id, failed: String(error.message || error) });
  }
};
