package openapi

import (
	"encoding/json"
	"net/http"

	"scrimp/internal/job/spec"
)

// exampleYAML is a job file as people write it, and exampleJSON what a program sends with the same words.
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

// submits reports whether the route takes one job.
func submits(t Route) bool { return t.Path == "/v1/jobs" && t.Method == http.MethodPost }

// jobFile refers to the schema of the job file, which is that of scrimp schema.
func (g *schemas) jobFile() map[string]any {
	const name = "JobFile"
	if _, made := g.made[name]; !made {
		var schema map[string]any
		if err := json.Unmarshal(spec.Schema(), &schema); err != nil {
			panic(err) // it is made by this program
		}
		delete(schema, "$schema") // its words mean the same in that of OpenAPI
		schema["examples"] = []any{json.RawMessage(exampleJSON)}
		g.made[name] = schema
	}
	return map[string]any{"$ref": "#/components/schemas/" + name}
}

// sentJob is the job file in a submission.
func (g *schemas) sentJob() map[string]any {
	return map[string]any{
		"description": "The job file: an object with its words and short forms, or a string that holds its YAML text",
		"anyOf": []any{g.jobFile(), map[string]any{"type": "string", "contentMediaType": "application/yaml",
			"examples": []string{exampleYAML}}}}
}

// examples adds to the bodies of a submission how they look, and the job file alone.
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
