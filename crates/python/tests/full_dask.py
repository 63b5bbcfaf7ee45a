"""A sweep on the workers of a cluster, which listens on 127.0.0.1 only."""

import logging
import tempfile
import unittest
from pathlib import Path

import blksim
from distributed import Client, LocalCluster
from test_blksim import SWEEP, program


class Cluster(unittest.TestCase):
    def test_bytes_are_those_of_a_local_run(self):
        settings = {"host": "127.0.0.1", "dashboard_address": None, "threads_per_worker": 1}
        # An error of a worker is one of the call as well.
        settings["silence_logs"] = logging.CRITICAL
        with tempfile.TemporaryDirectory() as folder, LocalCluster(n_workers=2, **settings) as cluster:
            file = Path(folder) / "a.toml"
            file.write_text(SWEEP)
            local, spread = file.with_name("local"), file.with_name("spread")
            with Client(cluster) as client:
                table = blksim.sweep(file, spread, client=client, shards=3)
                again = blksim.sweep(file, spread, client=client)
                with self.assertRaisesRegex(blksim.Error, "cannot read"):
                    blksim.sweep(file.with_name("none.toml"), spread, client=client)
            self.assertEqual(len([*spread.glob("shard-*.log")]), 5)
            program("sweep", file, "--output", local)
            for name in ("results.parquet", "results.csv"):
                self.assertEqual((spread / name).read_bytes(), (local / name).read_bytes())
            self.assertEqual(table, again)


if __name__ == "__main__":
    unittest.main()
