"""Tools hinted read-only whose name or arguments say otherwise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_mst.attempt.suspicious_tools import WRITING, Suspicion, says_write, suspicious_reads
from pytest_mst.domain.eval_config import Dispatcher
from pytest_mst.domain.write import ServerTools

READ = {"readOnlyHint": True}
READS_OF_REAL_SERVERS = """
    get_config read_file read_multiple_files list_directory start_search get_more_search_results
    list_searches get_file_info read_process_output list_sessions list_processes get_usage_stats
    get_recent_tool_calls get_prompts echo get-annotated-message get-env get-resource-links
    get-sum get-tiny-image trigger-long-running-operation fetch search_files directory_tree
    list_allowed_directories git_status git_diff_unstaged git_diff_staged git_log git_show
    git_branch kubectl_get kubectl_describe kubectl_logs explain_resource list_api_resources ping
    configuration_view events_list namespaces_list nodes_log nodes_stats_summary nodes_top
    pods_get pods_list_in_namespace pods_top resources_list read_graph search_nodes open_nodes
    get_graphql_schema get_type_details list_databases list_tables list_columns API-get-user
    API-retrieve-a-block API-list-data-source-templates API-retrieve-page-markdown
    browser_console_messages browser_find browser_network_requests browser_take_screenshot
    browser_snapshot browser_wait_for sequentialthinking get_current_time convert_time
    get_document_outline validate_document_footnotes get_all_comments find_text_in_document
""".split()  # noqa: SIM905 - a list of names is easier to read without its quotes
WRITES_OF_REAL_SERVERS = """
    git_commit git_add git_reset git_create_branch write_file edit_file create_directory move_file
    create_entities add_observations delete_relations chroma_fork_collection push_files
    create_or_update_file merge_pull_request update_pull_request_branch kubectl_apply
    exec_in_pod resources_create_or_update pods_delete pods_exec pods_run resources_scale
    API-post-page API-patch-page API-delete-a-block API-move-page browser_run_code_unsafe
    start_process_and_run force_terminate kill_process set_config_value insert_header_near_text
    upgrade_helm_chart cleanup redis_set
""".split()  # noqa: SIM905 - as above


def tool(name: str, annotations: Any = READ, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties}
    return {"name": name, "inputSchema": schema, "annotations": annotations}


def found(*tools: dict[str, Any], **said: Any) -> list[str]:
    """Return the names of the tools that are suspicious."""
    listed = {one["name"]: one for one in tools}
    return [one.tool for one in suspicious_reads(ServerTools("desk", listed, **said))]


@pytest.mark.parametrize("name", READS_OF_REAL_SERVERS)
def test_what_real_servers_call_their_reads_is_not_suspicious(name: str) -> None:
    assert not says_write(name)


@pytest.mark.parametrize("name", WRITES_OF_REAL_SERVERS)
def test_what_real_servers_call_their_writes_is(name: str) -> None:
    assert says_write(name)


@pytest.mark.parametrize(
    ("name", "is_write"),
    [
        ("createIssue", True),
        ("IssueDelete", True),
        ("HTTPPost", True),
        ("DELETE", True),
        ("v2.issues/create", True),
        ("get_or_create_user", True),
        ("find_and_replace", True),
        ("list_delete", True),
        ("getPost", False),
        ("get_update_history", False),
        ("checkSetMembership", False),
        ("updates", False),
        ("dropdown_values", False),
        ("runtime_information", False),
        ("", False),
    ],
)
def test_words_are_told_in_any_case_and_what_is_read_is_no_verb(name: str, is_write: bool) -> None:
    assert says_write(name) is is_write


def test_one_block_of_annotations_for_every_tool_is_warned_of() -> None:
    every = [tool(name) for name in ("get_a", "create_a", "delete_a", "call_surface")]
    assert found(*every) == ["create_a", "delete_a"]
    named = frozenset({"create_a", "delete_a"})
    assert found(*every, always_write_tools=named) == []


def test_a_tool_that_writes_and_is_hinted_a_read_is_named() -> None:
    assert found(tool("replace_symbol")) == ["replace_symbol"]
    assert suspicious_reads(ServerTools("desk", {"edit": tool("edit")})) == (Suspicion("edit", ""),)


@pytest.mark.parametrize(
    "annotations",
    [None, {}, {"readOnlyHint": False}, {"readOnlyHint": True, "destructiveHint": True}],
)
def test_what_is_stopped_anyway_is_not_warned_of(annotations: Any) -> None:
    assert found(tool("create_a", annotations)) == []
    dispatchers = {"run_tool": Dispatcher(tool="name")}
    assert found(tool("run_tool"), dispatchers=dispatchers) == []


def test_the_configs_own_word_for_a_read_is_taken() -> None:
    assert found(tool("execute_query"), read_only_tools=frozenset({"execute_query"})) == []


ACTIONS = {"type": "string", "enum": ["list", "get", "create", "DELETE", "close_issue"]}


@pytest.mark.parametrize("argument", ["action", "operation", "method", "command", "Action"])
@pytest.mark.parametrize(
    "schema",
    [
        ACTIONS,
        {"anyOf": [ACTIONS, {"type": "null"}]},
        {"oneOf": [{"const": "get"}, {"const": "create"}]},
        {"$ref": "#/$defs/Action"},
    ],
)
def test_an_argument_that_says_what_to_do_is_looked_at(argument: str, schema: Any) -> None:
    manage = tool("manage", **{argument: schema})
    manage["inputSchema"]["$defs"] = {"Action": ACTIONS}
    (one,) = suspicious_reads(ServerTools("desk", {"manage": manage}))
    assert one.tool == "manage"
    assert one.because.startswith(f"{argument}: create")


def test_an_argument_inside_of_others_is_looked_at() -> None:
    step = {"type": "object", "properties": {"op": {"enum": ["get", "put"]}}}
    assert found(tool("batch", steps={"type": "array", "items": step})) == ["batch"]
    assert found(tool("batch", step={"anyOf": [step, {"type": "null"}]})) == ["batch"]


def test_arguments_that_are_all_made_of_one_another_are_looked_at_once() -> None:
    around = {name: {"$ref": "#"} for name in "abcdefgh"}
    tree = tool("tree", **around, node={"anyOf": [{"$ref": "#/properties/node"}] * 50})
    assert found(tree) == []
    tree["inputSchema"]["properties"]["action"] = {"enum": ["create"]}
    assert found(tree) == ["tree"]


def test_other_arguments_and_values_that_only_read_are_no_matter() -> None:
    assert found(tool("a", action={"enum": ["get", "list", 3, None]})) == []
    assert found(tool("b", kind={"enum": ["create", "delete"]})) == []
    assert found(tool("c", action={"type": "string", "description": "create or delete"})) == []


def test_a_tool_that_runs_the_program_it_is_given_is_named() -> None:
    (one,) = suspicious_reads(ServerTools("db", {"query": tool("query", sql={"type": "string"})}))
    assert one == Suspicion("query", "runs the sql it is given")
    assert found(tool("query", sql={"type": ["string", "null"]})) == ["query"]
    assert found(tool("query", sql={"type": "boolean"}), tool("ask", query={})) == []


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        {"properties": []},
        {"properties": {"action": None}},
        {"properties": {"action": {"enum": "create", "anyOf": {}, "$ref": "#/$defs/none"}}},
        {"properties": {"action": {"$ref": "#/properties/action"}}},
        {"properties": {"deep": {"$ref": "#"}}},
    ],
)
def test_a_schema_that_makes_no_sense_says_nothing(schema: Any) -> None:
    assert found({"name": "manage", "inputSchema": schema, "annotations": READ}) == []


JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=6) | st.sampled_from(["create", "#", "get"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["properties", "items", "anyOf", "enum", "$ref", "action", "sql"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.text())
def test_no_schema_and_no_name_breaks_the_look_at_it(schema: Any, name: str) -> None:
    suspicions = suspicious_reads(
        ServerTools("desk", {name: {"inputSchema": schema, "annotations": READ}})
    )
    assert len(suspicions) <= 1


@given(st.sampled_from(sorted(WRITING)), st.sampled_from(["_", "-", ".", "/", " "]))
def test_each_verb_is_heard_first_and_last(verb: str, between: str) -> None:
    assert says_write(f"{verb}{between}thing")
    assert says_write(f"thing{between}{verb}")
    assert says_write(f"thing{verb.title()}")
    assert not says_write(f"get{between}{verb}")
