package state

import (
	jsonv2 "github.com/go-json-experiment/json"
	jsonv1 "github.com/go-json-experiment/json/v1"
)

// onePass decodes like encoding/json without its first pass over the text, which only finds syntax errors. decode finds
// those as it reads, and its callers drop a value that comes with an error.
var onePass = jsonv2.JoinOptions(jsonv1.DefaultOptionsV1(), jsonv1.ReportErrorsWithLegacySemantics(false))

// decode reads JSON of the log or of a snapshot into the value at v.
func decode(b []byte, v any) error { return jsonv2.Unmarshal(b, v, onePass) }
