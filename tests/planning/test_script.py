"""The script of a plan, run for real with stand-ins for what it starts."""

import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from service.planning import script
from service.planning.commands import key_to_curl
from service.planning.planned import Launcher, TestPlan
from tests.planning.examples import HOSTILE, SMALL, changed, one_test, planned
from tests.planning.workplace import Workplace

SCRIPTED = ("ior_write", "ior_read", "ior_write_under_read_load", "mdtest_create")
RESULTS = ("ior-write.json", "ior-read.json", "ior-write-under-read-load.json", "mdtest-create.txt")
SHELLS = [shell for shell in ("sh", "dash", "bash") if shutil.which(shell)]


def _results(place: Workplace, plan: TestPlan) -> Path:
    return place.folder / f"{plan.folder}-results"


def _noted(plan: TestPlan) -> list[list[str]]:
    """Return the calls that the stand-ins note when the script of a plan runs to its end."""
    calls = []
    for test in plan.tests:
        if test.scripted:
            for command in test.commands:
                calls += [command.argv, command.argv[_program(command.argv) :]]
            calls.append(test.post.argv)  # as soon as it is made, and once
    return calls


def _program(argv: list[str]) -> int:
    return next(n for n, word in enumerate(argv) if word in ("ior", "mdtest"))


def test_it_runs_the_largest_shards_of_uneven_ones_on_fewer_nodes(workplace: Workplace) -> None:
    uneven = changed(SMALL, shards={"skew": 3})
    plan = planned(uneven, directory=str(workplace.storage))
    assert (one_test(plan, "ior_write_largest_shards").nodes, plan.nodes) == (1, 2)
    done = workplace.run(script.shell(plan))
    assert (done.returncode, done.stderr) == (0, "")
    assert workplace.calls() == _noted(plan)
    assert "201  ior-write-largest-shards.json" in done.stdout
    assert list(workplace.storage.iterdir()) == []


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("launcher", list(Launcher))
def test_it_runs_the_commands_of_the_plan_word_for_word(
    workplace: Workplace, launcher: Launcher, shell: str
) -> None:
    plan = planned(SMALL, directory=str(workplace.storage), launcher=launcher)
    done = workplace.run(script.shell(plan), shell=shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert workplace.calls() == _noted(plan)
    assert [line for line in done.stdout.splitlines() if line.startswith("201")] == [
        f"201  {result}" for result in RESULTS
    ]
    assert list(workplace.storage.iterdir()) == []
    for result in RESULTS:
        assert (_results(workplace, plan) / result).stat().st_size > 0


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("form", ["shell", "slurm"])
def test_names_from_outside_are_words_and_nothing_else(workplace: Workplace, form: str, shell: str) -> None:
    storage = workplace.storage / HOSTILE.replace("/", "")
    storage.mkdir()
    launcher = Launcher.SRUN if form == "slurm" else Launcher.MPIRUN
    plan = planned(
        SMALL,
        name=HOSTILE,
        storage_label=HOSTILE,
        directory=str(storage),
        url="http://[::1]:80/a",
        launcher=launcher,
    )
    text = getattr(script, form)(plan)
    assert subprocess.run([shell, "-n"], input=text, text=True, check=False).returncode == 0
    done = workplace.run(text, shell=shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert workplace.calls() == _noted(plan)
    assert list(workplace.folder.rglob("pwned")) == []
    assert list(storage.iterdir()) == []


def test_a_name_with_line_ends_stays_in_its_comment(workplace: Workplace) -> None:
    ends = "\n\r\x0b\x0c\x1c\x85\u2028\u2029"
    plan = planned(SMALL, name=f"a{ends.join(['', 'touch pwned', '#SBATCH --nodes=9', 'b'])}", directory="/")
    for text in (script.shell(plan), script.slurm(plan)):
        assert len([line for line in text.splitlines() if "touch pwned" in line]) == 1
        assert len(re.findall(r"^#SBATCH --nodes", text, re.MULTILINE)) == (text.count("#SBATCH --nodes=2"))
        assert all(end not in text for end in ends[1:])


def test_what_it_prints_in_a_dry_run_is_what_it_would_do(workplace: Workplace) -> None:
    plan = planned(SMALL, directory=f"/{HOSTILE}", storage_label=HOSTILE)
    done = workplace.run(script.shell(plan), "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert workplace.calls() == []
    to_curl = f"{key_to_curl('STALLBUDGET_API_KEY')} | "
    lines = [line for line in done.stdout.splitlines() if not line.startswith("#")]
    printed = [shlex.split(line.removeprefix(to_curl)) for line in lines]
    assert sum(line.startswith(to_curl) for line in lines) == len(RESULTS)
    expected = [command.argv for test in plan.tests if test.scripted for command in test.commands]
    expected[3] = [*expected[3], "&"]
    expected[5] = [*expected[5], ">mdtest-create.txt"]
    assert printed == expected + [test.post.argv for test in plan.tests if test.scripted]
    assert list(workplace.storage.iterdir()) == []


@pytest.mark.parametrize("shell", SHELLS)
def test_the_key_reaches_curl_by_standard_input_and_nothing_else(workplace: Workplace, shell: str) -> None:
    key = f"sbk_{'0' * 32}_{'f' * 64}"
    workplace.environment["STALLBUDGET_API_KEY"] = key
    plan = planned(SMALL, directory=str(workplace.storage))
    done = workplace.run(script.shell(plan), shell=shell)
    assert (done.returncode, done.stderr) == (0, "")
    header = f'header = "Authorization: Bearer {key}"\n'
    assert (workplace.folder / "notes.stdin").read_text() == f"{header!r}\n" * len(RESULTS)
    assert key not in done.stdout
    assert key not in (workplace.folder / "notes").read_text()


def test_without_a_key_curl_is_given_none(workplace: Workplace) -> None:
    plan = planned(SMALL, directory=str(workplace.storage))
    assert workplace.run(script.shell(plan)).returncode == 0
    assert (workplace.folder / "notes.stdin").read_text() == "''\n" * len(RESULTS)


def test_what_is_no_key_is_refused_before_anything_runs(workplace: Workplace) -> None:
    workplace.environment["STALLBUDGET_API_KEY"] = 'sbk"\noutput = "pwned'
    done = workplace.run(script.shell(planned(SMALL, directory=str(workplace.storage))))
    assert done.returncode == 2
    assert "STALLBUDGET_API_KEY holds no key" in done.stderr
    assert workplace.calls() == []


def test_a_directory_that_the_shell_names_is_used_as_it_is(workplace: Workplace) -> None:
    plan = planned(SMALL)
    workplace.environment["STALLBUDGET_DIRECTORY"] = str(workplace.storage)
    workplace.environment["STALLBUDGET_RESULTS"] = str(workplace.folder / "my results, kept")
    done = workplace.run(script.shell(plan))
    assert (done.returncode, done.stderr) == (0, "")
    filled = [
        [word.replace("$STALLBUDGET_DIRECTORY", str(workplace.storage)) for word in call]
        for call in _noted(plan)
    ]
    assert workplace.calls() == filled
    assert {path.name for path in (workplace.folder / "my results, kept").iterdir()} >= set(RESULTS)


def test_files_of_others_are_left_alone(workplace: Workplace) -> None:
    (workplace.storage / "ior_write").mkdir()
    (workplace.storage / "ior_write" / "data").write_text("mine")
    (workplace.storage / "stallbudget-other").write_text("mine")
    plan = planned(SMALL, directory=str(workplace.storage))
    assert workplace.run(script.shell(plan)).returncode == 0
    left = sorted(str(path.relative_to(workplace.storage)) for path in workplace.storage.rglob("*"))
    assert left == ["ior_write", "ior_write/data", "stallbudget-other"]


def _remove(program: str) -> object:
    return lambda place: (place.path / program).unlink()


def _set(name: str, value: str) -> object:
    return lambda place: place.environment.__setitem__(name, value)


def _write(program: str, line: str) -> object:
    return lambda place: place.write(program, line)


FOLDER = planned(SMALL).folder
REFUSALS = {
    "no ior": (_remove("ior"), "ior is not on the PATH."),
    "no mdtest": (_remove("mdtest"), "mdtest is not on the PATH."),
    "no launcher": (_remove("mpirun"), "mpirun is not on the PATH."),
    "no curl": (_remove("curl"), "curl is not on the PATH."),
    "an old ior": (_set("STAND_IN_FAILS", "old-ior"), "IOR 3.3 or later is needed: ior --help does not know"),
    "no directory": (
        _set("STALLBUDGET_DIRECTORY", ""),
        "Set STALLBUDGET_DIRECTORY to a directory on the storage",
    ),
    "a relative one": (_set("STALLBUDGET_DIRECTORY", "here"), "The directory must be an absolute path."),
    "one with an @": (_set("STALLBUDGET_DIRECTORY", "/a@/b"), "The directory has an @ in its path"),
    "one that is not there": (_set("STALLBUDGET_DIRECTORY", "/no/such"), "/no/such is not a directory here."),
    "too little space": (
        _write("df", "echo 'fs 1 2 3 4 5'; echo 'fs 9 9 40000 1% /x'"),
        "has 40000 KiB free, and the tests need 43008: 44.04 MB (42 MiB).",
    ),
    "a df that says nothing": (_write("df", "exit 1"), "df does not say how much space"),
    "too few slots": (
        _set("STAND_IN_FAILS", "mpirun"),
        "mpirun cannot start 4 ranks here, 2 on a node; see ",
    ),
    "too few nodes": (_set("STAND_IN_HOSTS", "1"), "The ranks start on 1 nodes, and the plan is for 2"),
    "another run": (
        lambda place: (place.storage / FOLDER).mkdir(),
        "cannot be made: another run is using it, or one was killed and left it.",
    ),
    "results of before": (
        lambda place: (
            (place.folder / f"{FOLDER}-results").mkdir()
            or (place.folder / f"{FOLDER}-results" / "ior-read.json").touch()
        ),
        "holds results already",
    ),
    "a squashed owner": (_write("id", "echo 4242"), "not to you (root squash?): run as another user."),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_it_refuses_to_start_with_one_sentence(workplace: Workplace, case: str) -> None:
    workplace.environment["STALLBUDGET_DIRECTORY"] = str(workplace.storage)
    prepare, sentence = REFUSALS[case]
    prepare(workplace)  # type: ignore[operator]
    before = sorted(workplace.storage.iterdir())
    done = workplace.run(script.shell(planned(SMALL)))
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert sorted(workplace.storage.iterdir()) == before
    assert workplace.calls() == []


def test_a_directory_that_may_not_be_written_is_refused(workplace: Workplace) -> None:
    # To root everything is writable, so the check itself is asked.
    text = script.shell(planned(SMALL, directory="/x"))
    (line,) = [line for line in text.splitlines() if "is not writable" in line]
    assert line == '[ -w "$DIRECTORY" ] || refuse "$DIRECTORY is not writable."'


def test_an_unknown_argument_is_refused(workplace: Workplace) -> None:
    done = workplace.run(script.shell(planned(SMALL, directory=str(workplace.storage))), "--dry")
    assert (done.returncode, done.stderr) == (2, "There is one argument, --dry-run; not --dry.\n")


@pytest.mark.parametrize(
    ("fails", "missing"),
    [
        ("ior-read", {"ior-read.json", "ior-write-under-read-load.json"}),
        ("ior-write", {"ior-write.json", "ior-read.json", "ior-write-under-read-load.json"}),
        ("load", {"ior-write-under-read-load.json"}),
        ("load-ends", {"ior-write-under-read-load.json"}),
    ],
)
def test_a_test_that_fails_costs_its_own_result_alone(
    workplace: Workplace, fails: str, missing: set[str]
) -> None:
    workplace.environment["STAND_IN_FAILS"] = fails
    plan = planned(SMALL, directory=str(workplace.storage))
    done = workplace.run(script.shell(plan))
    assert done.returncode == 1
    for result in RESULTS:
        there = (_results(workplace, plan) / result).exists()
        assert there is (result not in missing)
        assert (f"---  {result}: not made" in done.stdout) is (result in missing)
        assert (f"{result} was not made; see " in done.stderr) is (result in missing)
        assert (f"201  {result}" in done.stdout) is (result not in missing)
    assert list(workplace.storage.iterdir()) == []
    assert ("The load ended before the write did" in done.stderr) is (fails != "ior-write")


@pytest.mark.parametrize(
    ("status", "shown", "said"),
    [("422", "422", "refused"), ("none", "000", "not sent"), ("500", "500", "refused")],
)
def test_a_post_that_is_refused_is_told_and_ends_with_1(
    workplace: Workplace, status: str, shown: str, said: str
) -> None:
    workplace.environment["STAND_IN_STATUS"] = status
    plan = planned(SMALL, directory=str(workplace.storage))
    done = workplace.run(script.shell(plan))
    assert done.returncode == 1
    for result in RESULTS:
        assert f"{shown}  {result}: {said}; to post it again" in done.stdout
        assert (_results(workplace, plan) / result).exists()
    assert done.stdout.count("as the test wants") == len(RESULTS)


def test_results_that_are_stored_already_are_no_failure(workplace: Workplace) -> None:
    workplace.environment["STAND_IN_STATUS"] = "200"
    done = workplace.run(script.shell(planned(SMALL, directory=str(workplace.storage))))
    assert (done.returncode, done.stdout.count("200  ")) == (0, len(RESULTS))


@pytest.mark.parametrize(
    ("sent", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 143), (signal.SIGINT, 130)]
)
def test_an_interruption_ends_the_ranks_and_removes_the_data(
    workplace: Workplace, sent: signal.Signals, status: int
) -> None:
    fifo = workplace.folder / "begun"
    os.mkfifo(fifo)
    workplace.environment["STAND_IN_PAUSES"] = str(fifo)
    plan = planned(SMALL, directory=str(workplace.storage))
    with workplace.start(script.shell(plan)) as started:
        rank = int(fifo.read_text())
        assert [path.name for path in workplace.storage.iterdir()] == [plan.folder]
        started.send_signal(sent)
        try:
            started.communicate(timeout=60)
        finally:
            started.kill()
    assert started.returncode == status
    assert list(workplace.storage.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(rank, 0)


def test_on_lustre_the_folder_gets_its_stripe_count_before_anything_is_written(workplace: Workplace) -> None:
    workplace.stand_in("lfs")
    plan = planned(SMALL, directory=str(workplace.storage))
    assert workplace.run(script.shell(plan)).returncode == 0
    folder = f"{workplace.storage}/{plan.folder}"
    assert workplace.calls()[:2] == [["lfs", "getstripe", "-d", folder], plan.lustre.argv]
    assert plan.lustre.argv == ["lfs", "setstripe", "-c", "1", folder]


def test_on_another_file_system_lfs_changes_nothing(workplace: Workplace) -> None:
    workplace.write("lfs", '[ "$1" != getstripe ] || exit 1; echo "$@" >&2')
    done = workplace.run(script.shell(planned(SMALL, directory=str(workplace.storage))))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_sync_scenario_without_a_restore_target_writes_and_creates_only(workplace: Workplace) -> None:
    body = changed(SMALL, save={"mode": "sync", "blocking_seconds": 0.5}, restore=None)
    plan = planned(body, directory=str(workplace.storage))
    done = workplace.run(script.shell(plan))
    assert (done.returncode, done.stderr) == (0, "")
    assert [call[-1].split("=")[-1] for call in workplace.calls() if call[0] == "ior"] == ["ior-write.json"]
    assert list(workplace.storage.iterdir()) == []


def test_where_fewer_ranks_write_than_load_the_read_has_ranks_and_files_of_its_own(
    workplace: Workplace,
) -> None:
    plan = planned(changed(SMALL, shards={"writers": 1}), directory=str(workplace.storage))
    assert [one_test(plan, test_id).ranks for test_id in SCRIPTED] == [1, 4, 1, 1]
    done = workplace.run(script.shell(plan))
    assert (done.returncode, done.stderr) == (0, "")
    assert workplace.calls() == _noted(plan)
    assert list(workplace.storage.iterdir()) == []


def test_a_read_that_must_outgrow_the_memory_writes_its_own_data(workplace: Workplace) -> None:
    body = changed(SMALL, cluster={**SMALL["cluster"], "host_memory_bytes_per_node": 20_000_000})
    plan = planned(body, directory=str(workplace.storage))
    done = workplace.run(script.shell(plan))
    assert (done.returncode, done.stderr) == (0, "")
    assert workplace.calls() == _noted(plan)
    assert list(workplace.storage.iterdir()) == []


def test_the_batch_file_asks_slurm_for_what_the_plan_needs() -> None:
    plan = planned(SMALL, launcher=Launcher.SRUN)
    lines = script.slurm(plan).splitlines()
    directives = [line for line in lines if line.startswith("#SBATCH")]
    assert lines[0] == "#!/bin/sh"
    assert lines[1 : 1 + len(directives)] == directives, "Slurm reads them only before the first command"
    assert directives == [
        f"#SBATCH --job-name={plan.folder}",
        "#SBATCH --nodes=2",
        "#SBATCH --ntasks-per-node=2",
        f"#SBATCH --time=0-00:{script.job_minutes(plan)}:00",
        "#SBATCH --signal=B:TERM@300",
        "#SBATCH --exclusive",
        f"#SBATCH --output={plan.folder}-%j.out",
    ]
    assert all(command.argv[0] == "srun" for test in plan.tests if test.scripted for command in test.commands)


@pytest.mark.parametrize(("seconds", "minutes"), [(0.0, 15), (60.0, 19), (3601.0, 256), (1e12, 999_999)])
def test_a_job_is_given_four_times_its_expected_time_and_the_starts(seconds: float, minutes: int) -> None:
    plan = planned(SMALL).model_copy(update={"expected_seconds": seconds})
    assert script.job_minutes(plan) == minutes


def test_a_long_job_is_given_days() -> None:
    plan = planned(SMALL).model_copy(update={"expected_seconds": 100_000.0})
    assert "#SBATCH --time=4-15:22:00" in script.slurm(plan)


def test_the_load_begins_before_the_write_and_ends_after_it(workplace: Workplace) -> None:
    plan = planned(SMALL, directory=str(workplace.storage))
    assert workplace.run(script.shell(plan)).returncode == 0
    log = (_results(workplace, plan) / "load.log").read_text()
    assert "read      826.74" in log
    assert not list(_results(workplace, plan).glob("load.f*"))
    test = one_test(plan, "ior_write_under_read_load")
    assert test.post.argv[-1].endswith("conditions=under_read_load")


@pytest.mark.parametrize("shell", SHELLS)
def test_what_was_finished_before_a_job_runs_out_of_time_is_posted(workplace: Workplace, shell: str) -> None:
    # A system too slow for its time: the write and the read are done, and the next test is told to end.
    fifo = workplace.folder / "begun"
    os.mkfifo(fifo)
    workplace.environment |= {
        "STAND_IN_PAUSES": str(fifo),
        "STAND_IN_PAUSES_AT": "ior_write_under_read_load/data",
    }
    plan = planned(SMALL, directory=str(workplace.storage), launcher=Launcher.SRUN)
    with workplace.start(script.slurm(plan), shell=shell) as started:
        rank = int(fifo.read_text())
        started.send_signal(signal.SIGTERM)
        out, _ = started.communicate(timeout=60)
    assert started.returncode == 143
    posted = [call for call in workplace.calls() if call[0] == "curl"]
    assert posted == [one_test(plan, test_id).post.argv for test_id in ("ior_write", "ior_read")]
    assert out.split("posted are:\n")[1].splitlines() == ["ior-write.json=201", "ior-read.json=201"]
    assert list(workplace.storage.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.kill(rank, 0)


def test_what_ends_before_anything_is_posted_says_so(workplace: Workplace) -> None:
    fifo = workplace.folder / "begun"
    os.mkfifo(fifo)
    workplace.environment["STAND_IN_PAUSES"] = str(fifo)
    with workplace.start(script.shell(planned(SMALL, directory=str(workplace.storage)))) as started:
        fifo.read_text()
        started.send_signal(signal.SIGTERM)
        out, _ = started.communicate(timeout=60)
    assert out.endswith("posted are:\nnone\n")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_post_that_failed_is_tried_again_at_the_end(workplace: Workplace, shell: str) -> None:
    # The service is away for the first two results.
    workplace.write(
        "curl", 'echo x >>tries; if [ "$(wc -l <tries)" -le 2 ]; then exit 7; fi; echo "{}" >"$9"; echo 201'
    )
    plan = planned(SMALL, directory=str(workplace.storage))
    done = workplace.run(script.shell(plan), shell=shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert "ior-write.json is not posted yet (000); that is tried again at the end." in done.stdout
    assert "posted mdtest-create.txt" in done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("201")] == [
        f"201  {result}" for result in RESULTS
    ]
    assert len((_results(workplace, plan) / "tries").read_text().splitlines()) == len(RESULTS) + 2


def test_its_last_lines_are_those_that_post(workplace: Workplace) -> None:
    plan = planned(SMALL, directory="/x")
    end = script.shell(plan).rpartition("remove_folder\n")[2]
    posts = [shlex.join(one_test(plan, test_id).post.argv) for test_id in SCRIPTED]
    assert [post in end for post in posts] == [True] * len(SCRIPTED)
    assert subprocess.run(["sh", "-n"], input=end, text=True, check=False).returncode == 0
