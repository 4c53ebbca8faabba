/* node compile.mjs PYODIDE IN.zip OUT.zip [--no-docstrings]: compiles the Python files of an archive for
   the Python of Pyodide, so that a reader's browser need not. The archive keeps no sources. */
import fs from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, from, to, ...options] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`).href);
const python = await loadPyodide({ indexURL: folder });
python.FS.writeFile("/in.zip", fs.readFileSync(from));
python.globals.set("docstrings", !options.includes("--no-docstrings"));
python.runPython(`
import ast, warnings
warnings.simplefilter("ignore")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

def tree(content):
    """Return the syntax tree, with empty docstrings if none are wanted."""
    found = ast.parse(content)
    for node in [] if docstrings else ast.walk(found):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, False) is not None:
            node.body[0].value.value = ""
    return found

import importlib._bootstrap_external as loader, zipfile
with zipfile.ZipFile("/in.zip") as read, zipfile.ZipFile("/out.zip", "w", zipfile.ZIP_DEFLATED) as out:
    for name in read.namelist():
        content, made = read.read(name), zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        if name.endswith(".py"):
            code = compile(tree(content), name, "exec", dont_inherit=True)
            source_hash = b"\\0" * 8
            content = loader._code_to_hash_pyc(code, source_hash, checked=False)
            made.filename += "c"
        out.writestr(made, content, zipfile.ZIP_DEFLATED)
`);
fs.writeFileSync(to, python.FS.readFile("/out.zip"));
