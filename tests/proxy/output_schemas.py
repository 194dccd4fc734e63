"""Output schemas as public MCP servers list them (November 2026), descriptions left out."""

from __future__ import annotations

from typing import Any

OF_REAL_SERVERS: dict[str, dict[str, Any]] = {
    "motherduck.execute_query": {
        "properties": {"result": {"type": "string"}},
        "required": ["result"],
        "type": "object",
        "x-fastmcp-wrap-result": True,
    },
    "everything.get-structured-content": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "temperature": {"type": "number"},
            "conditions": {"type": "string"},
            "humidity": {"type": "number"},
        },
        "required": ["temperature", "conditions", "humidity"],
        "additionalProperties": False,
    },
    "sequential-thinking.sequentialthinking": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "thoughtNumber": {"type": "number"},
            "totalThoughts": {"type": "number"},
            "nextThoughtNeeded": {"type": "boolean"},
            "branches": {"type": "array", "items": {"type": "string"}},
            "thoughtHistoryLength": {"type": "number"},
        },
        "required": [
            "thoughtNumber",
            "totalThoughts",
            "nextThoughtNeeded",
            "branches",
            "thoughtHistoryLength",
        ],
        "additionalProperties": False,
    },
    "memory.create_entities": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "entities": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "entityType": {"type": "string"},
                        "observations": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["name", "entityType", "observations"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["entities"],
        "additionalProperties": False,
    },
    "memory.add_observations": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "entityName": {"type": "string"},
                        "addedObservations": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["entityName", "addedObservations"],
                    "additionalProperties": False,
                },
            }
        },
        "required": ["results"],
        "additionalProperties": False,
    },
    "memory.delete_entities": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"success": {"type": "boolean"}, "message": {"type": "string"}},
        "required": ["success", "message"],
        "additionalProperties": False,
    },
    "memory.read_graph": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "entities": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "entityType": {"type": "string"},
                        "observations": {"type": "array", "items": {"type": "string"}},
                    },
                    "required": ["name", "entityType", "observations"],
                    "additionalProperties": False,
                },
            },
            "relations": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "from": {"type": "string"},
                        "to": {"type": "string"},
                        "relationType": {"type": "string"},
                    },
                    "required": ["from", "to", "relationType"],
                    "additionalProperties": False,
                },
            },
        },
        "required": ["entities", "relations"],
        "additionalProperties": False,
    },
    "filesystem.read_media_file": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "content": {
                "type": "array",
                "items": {
                    "anyOf": [
                        {
                            "type": "object",
                            "properties": {
                                "type": {"type": "string", "enum": ["image", "audio"]},
                                "data": {"type": "string"},
                                "mimeType": {"type": "string"},
                            },
                            "required": ["type", "data", "mimeType"],
                            "additionalProperties": False,
                        },
                        {
                            "type": "object",
                            "properties": {
                                "type": {"type": "string", "const": "resource"},
                                "resource": {
                                    "type": "object",
                                    "properties": {
                                        "uri": {"type": "string"},
                                        "mimeType": {"type": "string"},
                                        "blob": {"type": "string"},
                                    },
                                    "required": ["uri", "blob"],
                                    "additionalProperties": False,
                                },
                            },
                            "required": ["type", "resource"],
                            "additionalProperties": False,
                        },
                    ]
                },
            }
        },
        "required": ["content"],
        "additionalProperties": False,
    },
    "filesystem.write_file": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {"content": {"type": "string"}},
        "required": ["content"],
        "additionalProperties": False,
    },
    "time.convert_time": {
        "$defs": {
            "TimeResult": {
                "properties": {
                    "timezone": {"title": "Timezone", "type": "string"},
                    "datetime": {"title": "Datetime", "type": "string"},
                    "day_of_week": {"title": "Day Of Week", "type": "string"},
                    "is_dst": {"title": "Is Dst", "type": "boolean"},
                },
                "required": ["timezone", "datetime", "day_of_week", "is_dst"],
                "title": "TimeResult",
                "type": "object",
            }
        },
        "properties": {
            "source": {"$ref": "#/$defs/TimeResult"},
            "target": {"$ref": "#/$defs/TimeResult"},
            "time_difference": {"title": "Time Difference", "type": "string"},
        },
        "required": ["source", "target", "time_difference"],
        "title": "TimeConversionResult",
        "type": "object",
    },
}
