"""A real Ray cluster of two nodes on the loopback address: `make test-ray` runs this file."""

from __future__ import annotations

import os
import signal
import threading
import time

import faults
import pytest

os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # stay on the loopback address
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray = pytest.importorskip("ray")

from ray.cluster_utils import Cluster  # noqa: E402

from cmdplab.experiments.executors.ray import ray_executor  # noqa: E402
from cmdplab.experiments.experiment import read_experiment  # noqa: E402
from cmdplab.experiments.folder import works_of  # noqa: E402
from cmdplab.experiments.status import status_of  # noqa: E402
from cmdplab.experiments.sweep import sweep  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture
def cluster():
    node = {"num_cpus": 1, "node_ip_address": "127.0.0.1", "object_store_memory": 100 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    second = cluster.add_node(**node)
    cluster.wait_for_nodes()
    yield cluster, second
    cluster.shutdown()


def test_a_node_dies_half_way_and_the_results_are_those_of_a_local_sweep(cluster, tmp_path):
    both, second = cluster
    file = faults.write_experiment(tmp_path, episodes=400_000, seeds=2)
    faults.finish(file, tmp_path / "local")
    expected = faults.results(tmp_path / "local")
    assert len(expected) >= 20
    ended: list[str] = []
    killed = threading.Event()

    def kill_half_way() -> None:
        while len(ended) < len(expected) // 2:
            time.sleep(0.05)
        both.remove_node(second, allow_graceful=False)
        killed.set()

    watcher = threading.Thread(target=kill_half_way, daemon=True)
    watcher.start()
    with ray_executor(both.address) as execute:
        found = sweep(
            read_experiment(file),
            tmp_path / "ray",
            base=tmp_path,
            on_event=lambda event: ended.append(event.folder),
            every=0.2,
            executor=execute,
        )
    assert killed.is_set()
    assert {each.status for each in found} == {"done"}
    assert faults.results(tmp_path / "ray") == expected


def test_a_local_cluster_of_our_own_listens_on_loopback_only(tmp_path):
    file = faults.write_experiment(tmp_path, episodes=2000, seeds=1, rows=3)
    with ray_executor(None) as execute:
        found = sweep(read_experiment(file), tmp_path / "ray", base=tmp_path, executor=execute)
    assert {each.status for each in found} == {"done"}


def test_the_driver_can_be_stopped_and_attached_again(cluster, tmp_path):
    both, _ = cluster
    file = faults.write_experiment(tmp_path, episodes=400_000, seeds=1, rows=6)
    faults.finish(file, tmp_path / "local")
    process = faults.start(file, tmp_path / "ray", ray=both.address)
    time.sleep(6.0)
    faults.kill(process)
    with ray_executor(both.address) as execute:
        found = sweep(read_experiment(file), tmp_path / "ray", base=tmp_path, executor=execute)
    assert {each.status for each in found} == {"done"}
    assert faults.results(tmp_path / "ray") == faults.results(tmp_path / "local")


def test_ctrl_c_lets_every_task_checkpoint(cluster, tmp_path):
    both, _ = cluster
    file = faults.write_experiment(tmp_path, episodes=10**9, seeds=1, rows=2)
    process = faults.start(file, tmp_path / "ray", ray=both.address, every="1000")
    time.sleep(20.0)  # both tasks have begun, under load too
    process.send_signal(signal.SIGINT)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 130, printed
    found = [status_of(work) for work in works_of(tmp_path / "ray")]
    assert {each.status for each in found} == {"interrupted"}
    assert all(each.episodes > 0 for each in found)
