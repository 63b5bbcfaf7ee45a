"""The package against the program of the same tree (BLKSIM), and against pyarrow's readers."""

import csv
import faulthandler
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings
from pathlib import Path

import blksim
import pandas
import polars
import pyarrow

TOP = Path(__file__).parents[3]
PROGRAM = os.environ["BLKSIM"]
CAPTURE = TOP / "traces/m2-randread-none"
SWEPT = {
    "scheduler": ["none", "mq-deadline"],
    "threads": range(1, 3),
    "set": {"job.iodepth": [1, 8]},
    "runtime": "1ms",
}
# The least that a run can be: one I/O.
TINY = {
    "device": {"type": "null_blk"},
    "job": [{"name": "a", "rw": "randread", "size": "4k", "number_ios": 1}],
}
# Some ten minutes of one core.
LONG = {"scenario": "mq-deadline-scaling", "runtime": "100s"}


def program(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    return done.stdout, done.stderr


def address(array):
    """Of the values of a column that is in one piece."""
    return array.chunk(0).buffers()[1].address


class Figures(unittest.TestCase):
    def same(self, table, *arguments):
        """The table has the cells of the program's CSV, under its names and in its order."""
        out, _ = program(*arguments, "--csv", "-")
        names, *rows = csv.reader(io.StringIO(out))
        self.assertEqual(table.column_names, names)
        self.assertEqual(table.num_rows, len(rows))
        for name, *cells in zip(names, *rows):
            for cell, value in zip(cells, table[name].to_pylist()):
                if isinstance(value, bool):
                    value = str(value).lower()
                if isinstance(value, float):
                    cell = float(cell)
                if value is None:
                    value = ""
                self.assertEqual(value, type(value)(cell), name)
            # Whole numbers of one run and others of the next would be two types of one column.
            self.assertNotEqual(table.schema.field(name).type, pyarrow.null(), name)

    def test_run(self):
        table = blksim.run("mq-deadline-scaling", **SWEPT)
        self.assertEqual(table["job.iodepth"].to_pylist(), [1, 1, 8, 8] * 2)
        options = ["--scheduler=none,mq-deadline", "--threads=1,2", "--set=job.iodepth=1,8"]
        self.same(table, "run", "mq-deadline-scaling", "--runtime=1ms", *options)
        self.same(blksim.run(CAPTURE.parent / "../crates/cli/scenarios/trim.toml"), "run", "trim")
        fio = "--name=x --rw=randread --size=1m --number_ios=10"
        given = ["--device=null_blk", "--", *fio.split()]
        out, _ = program("run", "--csv=-", *given)
        table = blksim.run(None, device="null_blk", fio=fio)
        self.assertEqual(table["iops"][0].as_py(), float(next(csv.DictReader(io.StringIO(out)))["iops"]))

    def test_other_commands(self):
        self.same(blksim.replay(CAPTURE, scheduler=["none", "bfq"]), "replay", CAPTURE, "--scheduler=none,bfq")
        self.same(blksim.what_if(CAPTURE), "what-if", CAPTURE)
        self.same(blksim.analyze(CAPTURE), "analyze", CAPTURE)
        short = {"scheduler": ["none", "kyber"], "runtime": "1ms", "seeds": 2}
        options = ["--scheduler=none,kyber", "--runtime=1ms", "--seeds=2"]
        self.same(blksim.compare("trim", **short), "compare", "trim", *options)
        measured = TOP / "crates/study/measurements/ryzen-7950x.toml"
        self.same(blksim.calibrate(measured), "calibrate", measured)

    def test_conform(self):
        captures = [TOP / "traces" / name for name in ("dd01-defaults", "m2-prio-stalled-bfq")]
        table = blksim.conform(captures)
        for row, capture in zip(table.to_pylist(), captures):
            done = subprocess.run([PROGRAM, "conform", capture, "--json=-"], capture_output=True)
            verdict = json.loads(done.stdout)
            self.assertEqual(row["conforms"], done.returncode in (0, 4))
            self.assertEqual({name: row[name] for name in verdict if name in row},
                             {name: verdict[name] for name in verdict if name in row})

    def test_reports(self):
        out, _ = program("run", "trim", "--json=-")
        self.assertEqual(blksim.report("run", "trim"), json.loads(out))
        self.assertEqual(blksim.list(), json.loads(program("list", "--json")[0]))
        self.assertEqual(blksim.show("trim"), program("show", "trim")[0])

    def test_scenarios_as_texts(self):
        by_name = blksim.run("trim").drop_columns("scenario")
        as_text = blksim.run(blksim.show("trim"))
        self.assertEqual(as_text["scenario"][0].as_py(), "scenario")
        self.assertEqual(as_text.drop_columns("scenario"), by_name)
        row = blksim.run(TINY).to_pylist()[0]
        self.assertEqual((row["ios"], row["direction"]), (1, "read"))

    def test_types_do_not_depend_on_values(self):
        one, many = blksim.run(TINY), blksim.run("mq-deadline-scaling", runtime="1ms")
        self.assertEqual(one.schema, many.schema)
        self.assertEqual(str(one.schema.field("iops").type), "double")
        self.assertEqual(blksim.run(TINY, scheduler="mq-deadline").schema, one.schema)


SWEEP = """
scenario = "mq-deadline-scaling"
seeds = 2
[set]
runtime = "1ms"
[grid]
scheduler = ["none", "mq-deadline"]
job.iodepth = [1, 8]
"""


class Sweeps(unittest.TestCase):
    def test_bytes_are_those_of_the_program(self):
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "a.toml"
            file.write_text(SWEEP)
            table = blksim.sweep(file)
            self.assertEqual(table.num_rows, 8)
            self.assertEqual(set(table["job.iodepth"].to_pylist()), {1, 8})
            _, err = program("sweep", file, "--output", file.with_name("b"))
            for name in ("results.parquet", "results.csv"):
                ours = file.with_name("a.sweep") / name
                self.assertEqual(ours.read_bytes(), (file.with_name("b") / name).read_bytes(), err)
            # Nothing is made again.
            self.assertEqual(blksim.sweep(file), table)
            with self.assertRaisesRegex(blksim.Error, "sbatch: is for --engine slurm"):
                blksim.sweep(file, sbatch="-p x")


class Readers(unittest.TestCase):
    def test_polars_and_pandas_copy_nothing(self):
        table = blksim.run("mq-deadline-scaling", **SWEPT)
        of_polars = polars.from_arrow(table)
        of_pandas = table.select(["ios", "iops"]).to_pandas(split_blocks=True, zero_copy_only=True)
        for name in ("ios", "iops"):
            for values in (of_polars[name].to_numpy(allow_copy=False), of_pandas[name].to_numpy()):
                self.assertEqual(values.__array_interface__["data"][0], address(table[name]))
        self.assertEqual(of_polars["scheduler"].to_list(), table["scheduler"].to_pylist())
        self.assertIsInstance(table.to_pandas(), pandas.DataFrame)


class Errors(unittest.TestCase):
    def test_texts_are_those_of_the_program(self):
        for scenario, settings, options in [
            ("nvme-scalin", {}, []),
            ("trim", {"scheduler": "abacus"}, ["--scheduler=abacus"]),
            ("trim", {"set": {"job.bs": "x"}}, ["--set=job.bs=x"]),
            ("trim", {"set": ["job.iodepht=1"]}, ["--set=job.iodepht=1"]),
            ("trim", {"threads": "8..1"}, ["--threads=8..1"]),
            ("trim", {"machine": "abacus"}, ["--machine=abacus"]),
            ("missing.toml", {}, []),
            (TOP / "traces", {}, []),
        ]:
            with self.subTest(options or scenario), self.assertRaises(blksim.Error) as caught:
                blksim.run(scenario, **settings)
            _, err = program("run", scenario, *options)
            self.assertEqual(str(caught.exception), err.replace("error: ", "").strip())
        self.assertTrue(issubclass(blksim.Error, ValueError))

    def test_settings_are_checked(self):
        for settings, text in [
            ({"threds": 3}, "unexpected argument '--threds' found; a similar argument exists: '--threads'"),
            ({"seeds": 0}, "invalid value '0' for '--seeds <N>': 0 is not in 1..=1000"),
            ({"csv": "x"}, "the argument '--csv <FILE>' cannot be used multiple times"),
        ]:
            with self.assertRaises(blksim.Error) as caught:
                blksim.run("trim", **settings)
            self.assertEqual(str(caught.exception), text)

    def test_texts_of_scenarios(self):
        for scenario, text in [
            ({"queue": {"schedulerx": 1}}, "scenario:2: unknown field `schedulerx`; did you mean `scheduler`?"),
            ({"queue": None}, "scenario: invalid type: null"),
            ("[a]\nrw=red\n", "scenario:2: rw: "),
        ]:
            with self.assertRaises(blksim.Error) as caught:
                blksim.run(scenario)
            self.assertTrue(str(caught.exception).startswith(text), str(caught.exception))

    def test_stalls(self):
        with self.assertWarnsRegex(blksim.Stall, "lost-completion|stalled|nothing"):
            table = blksim.run("lost-completion")
        self.assertIn("stalled", table["outcome"].to_pylist())
        with self.assertRaises(blksim.Stall):
            blksim.run("lost-completion", check=True)

    def test_nothing_is_printed(self):
        code = "import blksim, warnings; warnings.simplefilter('ignore'); blksim.run('lost-completion')\n" \
            "try: blksim.run('nothing')\nexcept blksim.Error: pass\nblksim.conform(%r)" % str(TOP / "traces/dd01-defaults")
        done = subprocess.run([sys.executable, "-c", code], capture_output=True)
        self.assertEqual((done.stdout, done.stderr, done.returncode), (b"", b"", 0))

    def test_notes_are_warnings(self):
        job = "[x]\nfilename=/dev/nullb0\nrw=read\nsize=1m\nnumber_ios=1\nwrite_iolog=x\n"
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            file = Path(folder) / "a.fio"
            file.write_text(job)
            blksim.run(file)
        _, err = "", "".join(str(one.message) + "\n" for one in caught)
        self.assertRegex(err, "^note: write_iolog: ")


class Runs(unittest.TestCase):
    def test_ctrl_c_ends_a_run(self):
        # A run that goes on ends the tests.
        faulthandler.dump_traceback_later(60, exit=True)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        for call in (lambda: blksim.run(**LONG), lambda: blksim.run(**LONG, threads=[1, 2, 3, 4])):
            sent = []
            def send():
                sent.append(time.perf_counter())
                os.kill(os.getpid(), signal.SIGINT)
            timer = threading.Timer(0.3, send)
            timer.start()
            with self.assertRaises(KeyboardInterrupt):
                call()
            taken = time.perf_counter() - sent[0]
            print(f"Ctrl-C: {taken * 1000:.0f} ms", file=sys.stderr)
            # 0.2 s where nothing else runs.
            self.assertLess(taken, 1)
        self.assertEqual(blksim.run(TINY).num_rows, 1)

    def test_the_lock_is_free(self):
        counted, ended = [0], threading.Event()
        def count():
            while not ended.is_set():
                counted[0] += 1
                time.sleep(0.001)
        thread = threading.Thread(target=count)
        thread.start()
        before = counted[0]
        blksim.run("mq-deadline-scaling", runtime="20ms")
        progress = counted[0] - before
        ended.set()
        thread.join()
        self.assertGreater(progress, 20)

    def test_threads_of_python_do_not_mix(self):
        tables = {}
        def run(iodepth):
            tables[iodepth] = blksim.run("trim", set={"job.iodepth": iodepth})
        threads = [threading.Thread(target=run, args=[iodepth]) for iodepth in (1, 2, 4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for iodepth, table in tables.items():
            self.assertEqual(table, blksim.run("trim", set={"job.iodepth": iodepth}))

    def test_a_call_takes_less_than_5_ms(self):
        taken = []
        for _ in range(100):
            begun = time.perf_counter()
            blksim.run(TINY)
            taken.append(time.perf_counter() - begun)
        print(f"a run of one I/O: {min(taken) * 1000:.1f} ms at least", file=sys.stderr)
        self.assertLess(min(taken), 0.005)


class Stubs(unittest.TestCase):
    # Where the result goes is not a setting of a function that returns it.
    PRINTED = {"help", "version", "quiet", "csv"}

    def test_settings_are_the_options(self):
        text = Path(blksim.__file__).with_name("__init__.pyi").read_text()
        for name in ("run", "compare", "replay", "what_if", "analyze", "conform", "calibrate", "sweep"):
            out, _ = program(name.replace("_", "-"), "--help")
            options = set(re.findall(r"^ +(?:-\w, )?--([a-z-]+)", out, re.M)) - self.PRINTED
            stub = re.search(rf"^def {name}\((.*?)\) -> ", text, re.M | re.S)[1]
            stub = set(re.findall(r"^    (\w+):.* = \.\.\.,$", stub, re.M))
            stub -= {"check", "fio", "client"}
            self.assertEqual({one.rstrip("_").replace("_", "-") for one in stub}, options, name)


if __name__ == "__main__":
    unittest.main()
