"""What is refused before anything runs: exit code 4, one message, nothing started."""

from __future__ import annotations

from typing import Any

import pytest

from tests.plugin.eval_project import EvalProject, Session, answer, call, case, desk

GOOD = case("good", answer("ok"))


def assert_refused(project: EvalProject, session: Session, *said: str) -> None:
    """Check that a session was refused, once and for these reasons, and started nothing."""
    assert session.code == 4, session.text
    for text in said:
        assert session.count(text) == 1, session.text
    assert "Traceback" not in session.text
    assert "INTERNALERROR" not in session.text
    assert session.folders == ()
    assert project.desk_calls == []


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_wrong_key_names_file_line_and_the_right_key(
    project: EvalProject, processes: str
) -> None:
    project.eval(GOOD, pasThreshold=0.5)
    session = project.run("--mst", "-n", processes)
    assert_refused(project, session, 'unknown key "pasThreshold"; did you mean "passThreshold"?')
    line = next(
        number
        for number, text in enumerate((project.root / "desk.eval.json").read_text().split("\n"), 1)
        if "pasThreshold" in text
    )
    assert f"desk.eval.json:{line}" in session.err
    assert project.desk_starts == 0


def test_mistakes_in_several_files_are_all_told_at_once(project: EvalProject) -> None:
    project.eval(GOOD, name="one", trials=0)
    project.eval(GOOD, name="two", client="scriptd")
    project.write("three.eval.yaml", "name: [\n")
    session = project.run("--mst")
    assert_refused(project, session, "one.eval.json", "three.eval.yaml")
    assert project.desk_starts == 0


def test_a_wrong_client_names_its_place_and_the_right_one(project: EvalProject) -> None:
    project.eval(GOOD, client="scriptd")
    session = project.run("--mst")
    assert_refused(project, session, "desk.eval.json:", "scriptd")
    assert "'scripted'" in session.err or "scripted" in session.err
    assert project.desk_starts == 0


def test_a_wrong_step_names_its_case(project: EvalProject) -> None:
    project.eval(case("odd", {"cal": {"server": "desk", "tool": "find"}}))
    session = project.run("--mst")
    assert_refused(project, session, "case 'odd'", "did you mean 'call'?")
    assert project.desk_starts == 0


@pytest.mark.parametrize("option", ["--mst-variant", "--mst-client"])
@pytest.mark.parametrize("processes", ["0", "2"])
def test_an_option_that_names_nothing_says_what_there_is(
    project: EvalProject, option: str, processes: str
) -> None:
    project.eval(GOOD, variants=[{"name": "plain"}, {"name": "terse"}])
    session = project.run("--mst", option, "tersee", "-n", processes)
    valid = "terse" if option == "--mst-variant" else "scripted"
    assert_refused(project, session, option, "'tersee'")
    assert valid in session.err
    assert project.desk_starts == 0


@pytest.mark.parametrize("args", [("--mst-trials", "0"), ("--mst-concurrency", "many")])
def test_a_wrong_number_is_refused(project: EvalProject, args: tuple[str, str]) -> None:
    project.eval(GOOD)
    session = project.run("--mst", *args)
    assert_refused(project, session)
    assert args[0] in session.err
    assert project.desk_starts == 0


@pytest.mark.parametrize("line", ["mst_trials = lots", "mst_concurrency = 0", "mst = perhaps"])
def test_a_wrong_ini_value_is_refused(project: EvalProject, line: str) -> None:
    project.eval(GOOD)
    project.write("pytest.ini", f"[pytest]\n{line}\n")
    session = project.run(*(() if line.startswith("mst =") else ("--mst",)))
    assert_refused(project, session)
    assert line.partition(" ")[0] in session.err
    assert project.desk_starts == 0


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_server_that_writes_needs_a_write_mode(project: EvalProject, processes: str) -> None:
    project.eval(
        GOOD, servers={"desk": desk(), "shelf": desk("reads")}, writes={"shelf": "planned"}
    )
    session = project.run("--mst", "-n", processes)
    assert_refused(project, session, "server 'desk' has tools that are not read-only")
    assert "post, open_ticket, tag" in session.err
    assert "desk.eval.json:" in session.err
    assert "desk: planned" in session.err
    assert project.desk_starts == 2


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_direct_server_that_writes_is_refused_with_the_way_out(
    project: EvalProject, processes: str
) -> None:
    project.eval(GOOD, servers={"desk": desk(direct=True)})
    session = project.run("--mst", "-n", processes)
    assert_refused(project, session, "connected to server 'desk' directly")
    assert "post, open_ticket, tag" in session.err
    assert "leave out `servers.desk.direct`" in session.err
    assert "`desk: unguarded`" in session.err


@pytest.mark.parametrize("processes", ["0", "2"])
@pytest.mark.parametrize("mode", ["planned", "simulated", "server-planned", "live"])
def test_a_direct_server_cannot_be_given_what_only_a_proxy_can_keep(
    project: EvalProject, mode: str, processes: str
) -> None:
    server = desk("reads", direct=True, plannedWriteKey="_planned")
    project.eval(GOOD, servers={"desk": server}, writes={"desk": mode})
    session = project.run("--mst", "--allow-live-writes", "-n", processes)
    assert_refused(project, session, f"its writes cannot be {mode}")
    assert "'desk'" in session.err
    assert "leave out `servers.desk.direct`" in session.err


@pytest.mark.parametrize("processes", ["0", "2"])
@pytest.mark.parametrize(
    "keys",
    [
        {"writes": {"dsk": "planned", "desk": "planned"}},
        {"variants": [{"name": "a", "writes": {"dsk": "simulated"}}]},
    ],
)
def test_a_label_under_writes_that_no_server_has_is_refused(
    project: EvalProject, keys: dict[str, Any], processes: str
) -> None:
    project.eval(GOOD, **keys)
    session = project.run("--mst", "-n", processes)
    assert_refused(project, session, 'there is no server "dsk"')
    assert 'did you mean "desk"?' in session.err
    assert project.desk_starts == 0


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_tool_that_its_server_does_not_list_is_refused(
    project: EvalProject, processes: str
) -> None:
    project.eval(GOOD, servers={"desk": desk(alwaysWriteTools=["fnd"])})
    session = project.run("--mst", "-n", processes)
    assert_refused(project, session, "servers.desk.alwaysWriteTools names 'fnd'")
    assert "did you mean 'find'?" in session.err


def test_a_server_whose_tools_only_read_needs_none(project: EvalProject) -> None:
    project.eval(
        case("reads", call("find"), answer("ok")), servers={"desk": desk("reads")}, writes=None
    )
    session = project.run("--mst")
    assert session.code == 0
    (server,) = session.run.plan["variants"][0]["servers"]
    assert server["writeMode"] == "read-only"


@pytest.mark.parametrize("mode", ["live", {"desk": "live"}])
def test_live_writes_are_refused(project: EvalProject, mode: object) -> None:
    project.eval(GOOD, writes=mode)
    session = project.run("--mst")
    assert_refused(project, session, "desk.eval.json:")
    assert "live" in session.err


@pytest.mark.parametrize("processes", ["0", "2"])
def test_variants_that_answer_writes_differently_are_not_compared(
    project: EvalProject, processes: str
) -> None:
    variants = [{"name": "a", "writes": "planned"}, {"name": "b", "writes": "simulated"}]
    project.eval(GOOD, variants=variants)
    session = project.run("--mst", "-n", processes)
    assert_refused(project, session, "variant 'a': desk planned", "variant 'b': desk simulated")
    one = project.run("--mst", "--mst-variant", "b")
    assert one.code == 0
    assert [variant["name"] for variant in one.run.plan["variants"]] == ["b"]


@pytest.mark.parametrize("processes", ["0", "2"])
def test_variants_whose_servers_answer_writes_are_given_the_same_ones(
    project: EvalProject, processes: str
) -> None:
    both = {label: desk(plannedWriteKey="_planned") for label in ("desk", "shelf")}
    both["shelf"]["args"].append("other")
    variants = [{"name": "a", "servers": ["desk"]}, {"name": "b", "servers": ["shelf"]}]
    writes = {"desk": "server-planned", "shelf": "server-planned"}
    project.eval(GOOD, servers=both, writes=writes, variants=variants)
    session = project.run("--mst", "-n", processes)
    assert_refused(project, session, "variant 'a': desk server-planned; variant 'b': shelf server-")
    one = project.run("--mst", "--mst-variant", "b", "-n", processes)
    assert one.code == 0, one.text
    assert [variant["name"] for variant in one.run.plan["variants"]] == ["b"]


def test_an_unset_variable_is_refused(project: EvalProject) -> None:
    server = desk()
    server["env"]["DESK_KEY"] = "${DESK_KEY_OF_NOBODY}"
    project.eval(GOOD, servers={"desk": server})
    session = project.run("--mst")
    assert_refused(project, session, "desk.eval.json:")
    assert "DESK_KEY_OF_NOBODY" in session.err
    assert project.desk_starts == 0


def test_two_evals_of_one_name_are_refused(project: EvalProject) -> None:
    project.eval(GOOD, name="same", file="one.eval.json")
    project.eval(GOOD, name="Same", file="two.eval.json")
    session = project.run("--mst")
    assert_refused(project, session)
    assert "one.eval.json" in session.err
    assert "two.eval.json" in session.err
    assert project.desk_starts == 0


def test_two_cases_of_one_id_are_refused_with_both_places(project: EvalProject) -> None:
    project.eval(GOOD, GOOD)
    session = project.run("--mst")
    assert_refused(project, session)
    assert session.err.count("desk.eval.json:") == 2


def test_what_is_not_selected_is_not_looked_at(project: EvalProject) -> None:
    project.eval(GOOD)
    project.write("broken/other.eval.yaml", "name: [\n")
    assert project.run("--mst", "desk.eval.json").code == 0
    assert project.run("--mst", "--ignore=broken").code == 0
    assert project.run("--mst").code == 4


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_results_folder_that_cannot_be_made_is_refused(
    project: EvalProject, processes: str
) -> None:
    project.eval(GOOD)
    session = project.run("--mst", "--mst-results", "pytest.ini", "-n", processes)
    assert_refused(project, session, "cannot be made: Not a directory")
    assert "choose another --mst-results" in session.err
    assert project.desk_starts == 0


def test_setup_plan_makes_no_attempt_and_setup_only_is_refused(project: EvalProject) -> None:
    project.eval(case("reads", call("find"), answer("ok")), clientOptions={"script": []})
    project.test_file(
        """
        @pytest.mark.mst(input="x", config="desk.eval.json")
        def test_it(trial): assert 0
        """
    )
    plan = project.run("--mst", "--setup-plan")
    assert plan.code == 0, plan.text
    assert "SETUP    F trial" in plan.out
    assert project.desk_calls == []
    assert plan.folders == ()
    assert_refused(project, project.run("--mst", "--setup-only"), "take --setup-plan")


@pytest.mark.parametrize("processes", ["0", "2"])
def test_an_eval_that_is_met_again_through_a_link_is_refused(
    project: EvalProject, processes: str
) -> None:
    project.eval(GOOD, file="evals/desk.eval.json")
    (project.root / "again").symlink_to("evals", target_is_directory=True)
    session = project.run("--mst", "-n", processes)
    assert_refused(project, session, "has the name 'desk' too")
    assert session.count("again/desk.eval.json") == 1
    assert session.count("evals/desk.eval.json") == 1
    assert project.desk_starts == 0


def test_a_folder_that_links_to_itself_is_walked_once(project: EvalProject) -> None:
    project.eval(case("good", answer("ok")), file="evals/desk.eval.json", servers={})
    (project.root / "evals" / "loop").symlink_to(".", target_is_directory=True)
    session = project.run("--mst", within_s=30)
    assert session.code == 0, session.text
    assert session.run.verdicts == {"good": "passed"}
