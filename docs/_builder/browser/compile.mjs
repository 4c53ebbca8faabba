/* node compile.mjs PYODIDE IN.zip OUT.zip: compiles the Python files of an archive for the Python of
   Pyodide, so that a reader's browser need not. The archive keeps no sources. */
import fs from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, from, to] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`).href);
const python = await loadPyodide({ indexURL: folder });
python.FS.writeFile("/in.zip", fs.readFileSync(from));
python.runPython(`
import warnings
warnings.simplefilter("ignore")
import importlib._bootstrap_external as loader, zipfile
with zipfile.ZipFile("/in.zip") as read, zipfile.ZipFile("/out.zip", "w", zipfile.ZIP_DEFLATED) as out:
    for name in read.namelist():
        content, made = read.read(name), zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        if name.endswith(".py"):
            code = compile(content, name, "exec", dont_inherit=True)
            source_hash = b"\\0" * 8
            content = loader._code_to_hash_pyc(code, source_hash, checked=False)
            made.filename += "c"
        out.writestr(made, content, zipfile.ZIP_DEFLATED)
`);
fs.writeFileSync(to, python.FS.readFile("/out.zip"));
