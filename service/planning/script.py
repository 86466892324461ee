"""The plan as a shell script, and as a batch file for Slurm: one text, that a POSIX shell runs.

It checks what it needs before it starts, works in one folder that it makes and removes itself, keeps the results, and
posts them. Names from outside stand in it quoted, or in a comment without anything that could end the line.
"""

import math
import shlex
from collections.abc import Iterator

from service.planning import amounts
from service.planning.commands import DIRECTORY_VARIABLE, KEY_VARIABLE, key_to_curl, receipt
from service.planning.planned import Command, PlannedTest, TestId, TestPlan

START_SECONDS = 120.0
"""What the start of one test is given. [s]"""
TIME_MARGIN = 4.0
"""A job may take so many times what its targets allow: a system that falls short is to be measured as well."""
WARNING_SECONDS = 300
"""So long before its end a job is told, to remove its data; its finished results are posted by then. [s]"""
LONGEST_JOB_MINUTES = 999_999
"""Slurm's largest sensible time; a plan beyond it has to be cut. [min]"""
_END_OF_COMMANDS = "STALLBUDGET_END_OF_COMMANDS"


def shell(plan: TestPlan) -> str:
    """Return the plan as a script for `sh`."""
    return "\n".join(["#!/bin/sh", *_comment(plan), *_body(plan)]) + "\n"


def slurm(plan: TestPlan) -> str:
    """Return the plan, whose launcher is srun, as a batch file for `sbatch`."""
    return "\n".join(["#!/bin/sh", *_directives(plan), *_comment(plan), *_body(plan)]) + "\n"


def job_minutes(plan: TestPlan) -> int:
    """Return how long a job for the plan is given: its expected duration with a margin. [min]"""
    tests = sum(test.scripted for test in plan.tests)
    seconds = TIME_MARGIN * plan.expected_seconds + START_SECONDS * (tests + 1) + WARNING_SECONDS
    return min(math.ceil(seconds / 60), LONGEST_JOB_MINUTES)


def one_line(text: str) -> str:
    """Return a text without anything that could end a line, for a comment."""
    return "".join(character if character.isprintable() else " " for character in text)


def _directives(plan: TestPlan) -> Iterator[str]:
    hours, minutes = divmod(job_minutes(plan), 60)
    days, hours = divmod(hours, 24)
    per_node = max(test.ranks_per_node for test in plan.tests if test.scripted)
    yield f"#SBATCH --job-name={plan.folder}"
    yield f"#SBATCH --nodes={plan.nodes}"
    yield f"#SBATCH --ntasks-per-node={per_node}"
    yield f"#SBATCH --time={days}-{hours:02}:{minutes:02}:00"
    # To the script alone: it ends its ranks itself.
    yield f"#SBATCH --signal=B:TERM@{WARNING_SECONDS}"
    yield "#SBATCH --exclusive"
    yield f"#SBATCH --output={plan.folder}-%j.out"
    yield ""


def _comment(plan: TestPlan) -> Iterator[str]:
    where = amounts.of_nodes(plan.nodes, out_of=plan.scenario_nodes)
    yield f"# Tests of the storage for scenario: {one_line(plan.name)}"
    yield f"# Revision {plan.scenario_revision}, for {where}, by stallbudget {plan.engine_version}."
    yield (
        f"# They take {amounts.of_seconds(plan.expected_seconds)} where the targets are just reached, and "
        f"{amounts.of_bytes(plan.script_peak_bytes)} of space."
    )
    yield "#"
    yield "#   --dry-run              print the commands, and run none of them"
    if plan.directory is None:
        yield f"#   {DIRECTORY_VARIABLE}  the directory on the storage under test; it must be set"
    yield "#   STALLBUDGET_RESULTS    where the results go; they are kept"
    yield f"#   {KEY_VARIABLE}    the key to post them with, where the service needs one; never an argument"
    yield "#"
    yield "# Each result is posted as soon as it is made. It ends with a line for each, with 0 when all were made and"
    yield "# posted, 1 when one was not, 2 when it could not start."
    for test in plan.tests:
        yield "#"
        yield f"# {test.title}{'' if test.scripted else ' (in your training job; not run here)'}"
        for proof in test.proofs:
            yield f"#   {proof.target_id}: {proof.sentence}"
    if plan.unproven:
        yield "#"
        yield "# What this plan cannot show to be met:"
        for each in plan.unproven:
            yield f"#   {each.target_id} ({each.best} at best): {each.reason}"


def _body(plan: TestPlan) -> Iterator[str]:
    scripted = [test for test in plan.tests if test.scripted]
    yield _PROLOGUE.format(
        directory=shlex.quote(plan.directory)
        if plan.directory is not None
        else f"${{{DIRECTORY_VARIABLE}:-}}",
        variable=DIRECTORY_VARIABLE,
        key_variable=KEY_VARIABLE,
        key_to_curl=key_to_curl("key"),
        folder=shlex.quote(plan.folder),
        launcher=plan.launcher,
        needed_kib=-(-plan.script_peak_bytes // 1024),
        needed=amounts.of_bytes(plan.script_peak_bytes),
        end=_END_OF_COMMANDS,
        commands="\n".join(_listed(plan, scripted)),
        results=" ".join(test.result_file for test in scripted),
    ).rstrip("\n")
    yield from _launch_check(plan)
    yield _START.rstrip("\n")
    yield 'if command -v lfs >/dev/null 2>&1 && lfs getstripe -d "$FOLDER" >/dev/null 2>&1; then'
    yield f"  {plan.lustre.line} || echo 'The stripe count could not be set.' >&2"
    yield "fi"
    for number, test in enumerate(scripted):
        yield ""
        yield f"say {shlex.quote(f'{test.title}: {amounts.of_nodes(test.nodes)}, {test.ranks:,} ranks')}"
        yield f'mkdir "$FOLDER"/{test.id}'
        yield from (_under_load(test) if test.id is TestId.IOR_WRITE_UNDER_READ_LOAD else _plain(test))
        for done in _no_longer_needed(scripted, number):
            yield f"remove_data {done}"
        yield f"send {test.result_file} {receipt(test.result_file)} \\"
        yield f"  {shlex.join(test.post.argv)}"
        yield f"sent {test.result_file}"
    yield ""
    yield "remove_folder"
    yield ""
    yield "say 'The results; what could not be posted is tried again'"
    for test in scripted:
        yield f"send {test.result_file} {receipt(test.result_file)} \\"
        yield f"  {shlex.join(test.post.argv)}"
        yield f"told {test.result_file} {receipt(test.result_file)}"
    yield ""
    others = [test for test in plan.tests if not test.scripted]
    if others:
        yield "say 'Your training job has these to add, and posts them with:'"
        yield f"cat <<'{_END_OF_COMMANDS}'"
        yield from (f"  {test.post.line}" for test in others)
        yield _END_OF_COMMANDS
    yield _EPILOGUE.rstrip("\n")


def _listed(plan: TestPlan, scripted: list[PlannedTest]) -> Iterator[str]:
    """Yield the commands as `--dry-run` prints them."""
    for test in scripted:
        yield f"# {test.title}"
        for command in test.commands:
            background = " &" if _is_load(test, command) else ""
            out = f" >{test.result_file}" if test.id is TestId.MDTEST_CREATE else ""
            yield f"{command.line}{out}{background}"
    yield "# Post the results"
    yield from (test.post.line for test in scripted)


def _is_load(test: PlannedTest, command: Command) -> bool:
    return test.id is TestId.IOR_WRITE_UNDER_READ_LOAD and command is test.commands[1]


def _launch_check(plan: TestPlan) -> Iterator[str]:
    """Yield the check that the ranks start, and on as many nodes as planned."""
    # Of the largest; where all write, that is the first.
    test = max((test for test in plan.tests if test.scripted), key=lambda test: test.ranks)
    yield ""
    yield f"if ! {_launched(test)} uname -n \\"
    yield '  </dev/null >"$RESULTS"/launch.txt 2>"$RESULTS"/launch.log; then'
    yield (
        f'  refuse "{plan.launcher} cannot start {test.ranks} ranks here, {test.ranks_per_node} on a node; '
        'see $RESULTS/launch.log."'
    )
    yield "fi"
    yield 'started=$(sort -u "$RESULTS"/launch.txt | wc -l)'
    yield f'if [ "$((started))" -ne {test.nodes} ]; then'
    yield (
        f'  refuse "The ranks start on $((started)) nodes, and the plan is for {test.nodes}; ask for a plan with as '
        'many, or give the launcher its hosts."'
    )
    yield "fi"


def _launched(test: PlannedTest) -> str:
    """Return the launcher's words of a test's command: all before the benchmark."""
    words = test.commands[0].argv
    return shlex.join(words[: words.index("ior")])


def _plain(test: PlannedTest) -> Iterator[str]:
    log = f"{test.result_file.rpartition('.')[0]}.log"
    out = test.result_file if test.id is TestId.MDTEST_CREATE else log
    *before, measured = test.commands
    conditions = [f"run {log} {log} \\\n  {command.line}" for command in before]
    conditions.append(f"run {out} {log} \\\n  {measured.line}")
    yield f"if {' && '.join(conditions)}; then"
    yield f"  made {test.result_file} {log}"
    yield "else"
    yield f"  failed {test.result_file} {log}"
    yield "fi"


def _under_load(test: PlannedTest) -> Iterator[str]:
    log = f"{test.result_file.rpartition('.')[0]}.log"
    prepare, load, write = test.commands
    yield f"if run {log} {log} \\"
    yield f"  {prepare.line} &&"
    yield "  mkfifo load.fifo; then"
    yield f"  {load.line} </dev/null >load.fifo 2>>load.log &"
    yield _WAIT_FOR_LOAD.rstrip("\n")
    yield f"  if [ ! -e load.ended ] && run {log} {log} \\"
    yield f"    {write.line} &&"
    yield "    [ ! -e load.ended ]; then"
    yield f"    made {test.result_file} {log}"
    yield "  else"
    yield "    [ ! -e load.ended ] || echo 'The load ended before the write did; see load.log.' >&2"
    yield f"    failed {test.result_file} {log}"
    yield "  fi"
    yield "  end_load"
    yield "else"
    yield f"  failed {test.result_file} {log}"
    yield "fi"


def _no_longer_needed(scripted: list[PlannedTest], number: int) -> Iterator[str]:
    """Yield the folders of what no test after this one reads."""
    test = scripted[number]
    reads_follow = any(each.id is TestId.IOR_READ for each in scripted[number + 1 :])
    if test.id is not TestId.IOR_WRITE or not reads_follow:
        yield test.id
    if test.id is TestId.IOR_READ:
        yield TestId.IOR_WRITE


_PROLOGUE = """\
set -eu
umask 077

DIRECTORY={directory}
RESULTS=${{STALLBUDGET_RESULTS:-{folder}-results}}
made_folder= job= load= drain= began= stored=' ' wrong=0
# The benchmarks have no use for the key.
key=${{{key_variable}:-}}
unset {key_variable}
# IOR and the posts name their files without a path, since IOR takes a comma in one for the end of it.

say() {{ printf '\\n== %s\\n' "$1"; }}
refuse() {{ printf '%s\\n' "$1" >&2; exit 2; }}

remove_folder() {{
  if [ -n "$made_folder" ]; then
    made_folder=
    rm -rf -- "$FOLDER" || echo "$FOLDER could not be removed." >&2
  fi
}}
remove_data() {{ rm -rf -- "$FOLDER/$1" || echo "$FOLDER/$1 could not be removed." >&2; }}
end_load() {{
  if [ -n "$load" ]; then kill "$load" 2>/dev/null || :; wait "$load" 2>/dev/null || :; load=; fi
  if [ -n "$drain" ]; then wait "$drain" 2>/dev/null || :; drain=; fi
  rm -f load.fifo load.ended
}}
end_all() {{
  if [ -n "$job" ]; then kill "$job" 2>/dev/null || :; wait "$job" 2>/dev/null || :; job=; fi
  if [ -n "$load" ]; then end_load; fi
  remove_folder
  if [ -n "$began" ]; then
    began=
    say "Stopped before the end; the results are in $RESULTS, and posted are:"
    case $stored in ' ') echo none ;; *) printf '%s\n' $stored ;; esac
  fi
}}
trap end_all EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

# run OUTPUT LOG COMMAND...: in the background, so that a signal is not kept waiting.
run() {{
  output=$1 log=$2
  shift 2
  "$@" </dev/null >>"$output" 2>>"$log" &
  job=$!
  status=0
  wait "$job" || status=$?
  job=
  return "$status"
}}
made() {{
  if [ -s "$1" ]; then echo "made $1"; else failed "$1" "$2"; fi
}}
failed() {{
  echo "$1 was not made; see $2 in $RESULTS." >&2
  rm -f "$1"
}}
# send RESULT RECEIPT COMMAND...: post a result that was made and is not stored yet.
send() {{
  result=$1
  shift 2
  status=
  if [ ! -s "$result" ]; then return; fi
  case $stored in
    *" $result="*)
      status=${{stored##*" $result="}}
      status=${{status%% *}}
      return
      ;;
  esac
  status=$({key_to_curl} | "$@") || status=000
  case $status in 200|201) stored="$stored$result=$status " ;; esac
}}
# sent RESULT: say what became of it, while the other tests are still to come.
sent() {{
  case $status in
    '') ;;
    200|201) echo "posted $1" ;;
    *) echo "$1 is not posted yet ($status); that is tried again at the end." ;;
  esac
}}
# told RESULT RECEIPT: say at the end what became of it.
told() {{
  case $status in
    '')
      wrong=1
      printf '%s  %s\n' '---' "$1: not made"
      ;;
    200|201) printf '%s  %s\n' "$status" "$1" ;;
    *)
      wrong=1
      said=refused
      if [ "$status" = 000 ]; then said='not sent'; fi
      printf '%s  %s\n' "$status" "$1: $said; to post it again, run its line of --dry-run in $RESULTS"
      if [ -s "$2" ]; then cut -c 1-600 "$2"; fi
      ;;
  esac
}}

case ${{1:-}} in
  '') ;;
  --dry-run)
    cat <<'{end}'
{commands}
{end}
    exit 0
    ;;
  *) refuse "There is one argument, --dry-run; not $1." ;;
esac

case $key in
  *[!A-Za-z0-9_]*) refuse '{key_variable} holds no key: it has characters that no key has.' ;;
esac
if [ -z "$DIRECTORY" ]; then refuse 'Set {variable} to a directory on the storage under test.'; fi
case $DIRECTORY in
  *@*) refuse 'The directory has an @ in its path, which the benchmarks take for the border between two paths.' ;;
  /*) ;;
  *) refuse 'The directory must be an absolute path.' ;;
esac
FOLDER=$DIRECTORY/{folder}
for tool in {launcher} ior mdtest curl awk df sort uname; do
  command -v "$tool" >/dev/null 2>&1 || refuse "$tool is not on the PATH."
done
# What --posix.odirect came with writes JSON that can be read; IOR without MPI around it prints its help.
case $(ior --help 2>&1 || :) in
  *posix.odirect*) ;;
  *) refuse 'IOR 3.3 or later is needed: ior --help does not know --posix.odirect.' ;;
esac
[ -d "$DIRECTORY" ] || refuse "$DIRECTORY is not a directory here."
[ -w "$DIRECTORY" ] || refuse "$DIRECTORY is not writable."
free_kib=$(df -Pk "$DIRECTORY" | awk 'NR == 2 {{ print $4 }}')
case $free_kib in
  ''|*[!0-9]*) refuse "df does not say how much space $DIRECTORY has." ;;
esac
if [ "$free_kib" -lt {needed_kib} ]; then
  refuse "$DIRECTORY has $free_kib KiB free, and the tests need {needed_kib}: {needed}."
fi
mkdir -p -- "$RESULTS" || refuse "$RESULTS cannot be made."
RESULTS=$(cd -- "$RESULTS" && pwd)
for result in {results}; do
  [ ! -e "$RESULTS/$result" ] || refuse "$RESULTS holds results already: move them, or set STALLBUDGET_RESULTS."
done
"""

_START = """
mkdir "$FOLDER" 2>/dev/null || refuse "$FOLDER cannot be made: another run is using it, or one was killed and left it."
made_folder=yes
owner=$(ls -nd "$FOLDER" | awk '{ print $3 }')
if [ "$owner" != "$(id -u)" ]; then
  refuse "What is made in $DIRECTORY belongs to user $owner, not to you (root squash?): run as another user."
fi
cd "$RESULTS"
began=yes
"""

_WAIT_FOR_LOAD = """\
  load=$!
  exec 3<load.fifo
  started=
  while IFS= read -r line <&3; do
    printf '%s\\n' "$line" >>load.log
    case $line in 'read '*) started=yes; break ;; esac
  done
  if [ -z "$started" ]; then : >load.ended; fi
  { cat <&3 >>load.log; : >load.ended; } &
  drain=$!
  exec 3<&-
"""

_EPILOGUE = """
began=
say "The results are in $RESULTS"
exit "$wrong"
"""
