"""The notebooks of docs/notebooks: each cell runs, and its assertions hold."""

import unittest
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[3] / "docs/notebooks"


class Notebooks(unittest.TestCase):
    def test_each(self):
        names = sorted(NOTEBOOKS.glob("*.ipynb"))
        self.assertEqual(len(names), 3)
        for name in names:
            with self.subTest(name.stem):
                notebook = nbformat.read(name, as_version=4)
                nbformat.validate(notebook)
                for cell in notebook.cells:
                    # Results are not kept: they would be old ones some day.
                    self.assertFalse(cell.get("outputs"), cell.id)
                NotebookClient(notebook, resources={"metadata": {"path": NOTEBOOKS}}).execute()


if __name__ == "__main__":
    unittest.main()
