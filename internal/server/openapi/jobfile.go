package openapi

import (
	"encoding/json"
	"net/http"

	"scrimp/internal/job/spec"
)

// exampleYAML is a job file as users write it; exampleJSON is the same as a program sends it.
const (
	exampleYAML = `name: llama-ft
command: exec python3 train.py --steps 6000
resources: {accelerator: H100, memory: 8GiB+}
work: {steps: 6000, time: 90m}
checkpoint: {dir: checkpoints}
deadline: in 6h
budget: $30
`
	exampleJSON = `{"name": "llama-ft", "command": "exec python3 train.py --steps 6000",
  "resources": {"accelerator": "H100", "memory": "8GiB+"}, "work": {"steps": 6000, "time": "90m"},
  "checkpoint": {"dir": "checkpoints"}, "deadline": "in 6h", "budget": "$30"}`
)

// submits reports whether the route accepts one job.
func submits(t Route) bool { return t.Path == "/v1/jobs" && t.Method == http.MethodPost }

// jobFile returns a reference to the schema of the job file, the one that scrimp schema prints.
func (g *schemas) jobFile() map[string]any {
	const name = "JobFile"
	if _, made := g.made[name]; !made {
		var schema map[string]any
		if err := json.Unmarshal(spec.Schema(), &schema); err != nil {
			panic(err) // this program made it
		}
		delete(schema, "$schema") // OpenAPI 3.1 uses the same dialect
		schema["examples"] = []any{json.RawMessage(exampleJSON)}
		g.made[name] = schema
	}
	return map[string]any{"$ref": "#/components/schemas/" + name}
}

// jobSchema returns the schema of the job file in a submission.
func (g *schemas) jobSchema() map[string]any {
	return map[string]any{
		"description": "The job file: an object with its words and short forms, or a string that holds its YAML text",
		"anyOf": []any{g.jobFile(), map[string]any{"type": "string", "contentMediaType": "application/yaml",
			"examples": []string{exampleYAML}}}}
}

// examples adds examples to the bodies of a submission, and the bare job file as a body.
func examples(g *schemas, content map[string]any) {
	type object = map[string]any
	body, _ := content["application/json"].(object)
	body["examples"] = object{
		"object": object{"summary": "The job file as an object",
			"value": object{"key": "6f1c0a5be1d24b7d9a3e", "spec": json.RawMessage(exampleJSON)}},
		"text": object{"summary": "The job file as its YAML text",
			"value": object{"key": "6f1c0a5be1d24b7d9a3e", "spec": exampleYAML}},
	}
	content["application/yaml"] = object{"schema": g.jobFile(),
		"examples": object{"file": object{"summary": "The job file alone; its key is the header Idempotency-Key",
			"value": exampleYAML}}}
}
