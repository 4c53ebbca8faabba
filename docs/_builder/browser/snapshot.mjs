/* node snapshot.mjs PYODIDE OUT LIBRARIES.zip PROVER.zip CHECKER.zip: starts the judge in Pyodide, as
   a page without a snapshot would, and writes its memory, compressed, so that a page need not. */
import fs from "node:fs";
import { pathToFileURL } from "node:url";
import zlib from "node:zlib";

const [folder, out, libraries, ...packages] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`).href);
const python = await loadPyodide({ indexURL: folder, _makeSnapshot: true });
const read = (path) => new Uint8Array(fs.readFileSync(path));
python.FS.writeFile("/libraries.zip", read(libraries));
python.runPython("import sys; sys.path.append('/libraries.zip')");
packages.forEach((each) => python.unpackArchive(read(each), "zip"));
/* Every module of the prover, and what it imports when it is first asked. */
python.runPython(`
import gc, importlib, json, linecache, pkgutil
import answers, otimes.algebra
for module in pkgutil.walk_packages(otimes.algebra.__path__, "otimes.algebra."):
    importlib.import_module(module.name)
for asked in (
    {"do": "exercise", "left": "(A B)ᵀ", "answer": "Bᵀ Aᵀ"},
    {"do": "exercise", "left": "(A B)ᵀ", "answer": "Aᵀ Bᵀ", "shapes": "A: n n, B: n n"},
    {"do": "decide", "equation": "softmax(S + c 𝟏ᵀ) = softmax(S)", "shapes": "S: n m, c: n 1"},
):
    found = json.loads(answers.answer(json.dumps(asked)))
    assert found.get("status") in ("proved", "refuted"), found
linecache.clearcache()
gc.collect()
`);

/* What has been freed is overwritten with zeros, which compress to nothing. */
const heap = python._module;
const end = heap.HEAP8.length - (1 << 20);
const blocks = [];
for (let size = 1 << 16; size >= 64; size >>= 2) {
  for (let at = 0; at < end; ) {
    at = heap._malloc(size);
    heap.HEAP8.fill(0, at, at + size);
    blocks.push(at);
  }
}
blocks.forEach((at) => heap._free(at));
fs.writeFileSync(out, zlib.gzipSync(python.makeMemorySnapshot()));
