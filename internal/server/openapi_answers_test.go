package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/auth"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
	"scrimp/internal/work/bill"
)

// described is the OpenAPI document as a client reads it.
type described struct {
	Paths map[string]map[string]struct {
		Responses map[string]struct {
			Content map[string]struct{ Schema map[string]any }
		}
	}
	Components struct{ Schemas map[string]map[string]any }
}

// against lists how a value violates its schema. It supports the JSON Schema keywords that the document uses, and
// counts undescribed properties as violations.
func (d described) against(schema map[string]any, v any, at string) (wrong []string) {
	if ref, ok := schema["$ref"].(string); ok {
		named, known := d.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")]
		if !known {
			return []string{at + ": " + ref + " is not described"}
		}
		return d.against(named, v, at)
	}
	if either, ok := schema["anyOf"].([]any); ok {
		for _, one := range either {
			w := d.against(one.(map[string]any), v, at)
			if len(w) == 0 {
				return nil
			}
			wrong = append(wrong, w...)
		}
		return wrong
	}
	kinds := []any{}
	switch k := schema["type"].(type) {
	case string:
		kinds = append(kinds, k)
	case []any:
		kinds = k
	case nil:
		return nil
	}
	kind := ""
	switch x := v.(type) {
	case nil:
		kind = "null"
	case bool:
		kind = "boolean"
	case float64:
		if kind = "number"; slices.Contains(kinds, any("integer")) && x == float64(int64(x)) {
			kind = "integer"
		}
	case string:
		kind = "string"
		if allowed, ok := schema["enum"].([]any); ok && !slices.Contains(allowed, v) {
			wrong = append(wrong, fmt.Sprintf("%s: %q is none of %v", at, x, allowed))
		}
		if _, err := time.Parse(time.RFC3339Nano, x); schema["format"] == "date-time" && err != nil {
			wrong = append(wrong, at+": "+err.Error())
		}
	case []any:
		kind = "array"
		items, _ := schema["items"].(map[string]any)
		for i, e := range x {
			wrong = append(wrong, d.against(items, e, fmt.Sprintf("%s[%d]", at, i))...)
		}
	case map[string]any:
		kind = "object"
		properties, _ := schema["properties"].(map[string]any)
		more, open := schema["additionalProperties"].(map[string]any)
		for name, e := range x {
			p, known := properties[name].(map[string]any)
			switch {
			case known:
				wrong = append(wrong, d.against(p, e, at+"."+name)...)
			case open:
				wrong = append(wrong, d.against(more, e, at+"."+name)...)
			default:
				wrong = append(wrong, at+"."+name+" is not described")
			}
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, has := x[name.(string)]; !has {
				wrong = append(wrong, at+"."+name.(string)+" is missing")
			}
		}
	}
	if !slices.Contains(kinds, any(kind)) {
		wrong = append(wrong, fmt.Sprintf("%s is %s, described as %v", at, kind, kinds))
	}
	return wrong
}

// Every response matches its schema: for jobs without any results, running jobs and jobs that wait for approval; for
// limits with few fields; and for refusals.
func TestOpenAPI_ResponsesMatchTheirSchemas(t *testing.T) {
	t.Parallel()
	var d described
	must.Do(t, json.Unmarshal(OpenAPI("test"), &d))
	w := newWorldOf(t, &firm{}, nil)
	w.must("PUT", "/v1/teams/a", api.SetTeam{Projects: []string{"x"}}, nil)
	w.user("ann", identity.Grant{Team: "*", Role: identity.Viewer})
	w.limit(budget.Limit{Scope: "team:a", Window: budget.Month, Dollars: dollars(500), Approve: dollars(100)})
	w.limit(budget.Limit{Scope: "all", Window: budget.Total, Jobs: new(100)})
	w.must("PUT", "/v1/budgets", api.SetBudget{Tag: "ticket"}, nil)
	for name, rest := range map[string]string{
		"plain": "", "held": `,"budget":{"dollars":"200"}`,
		"rich": `,"budget":{"dollars":"20"},"deadline":"in 5h","work":{"steps":100,"time":"1h"},"project":"x"`,
	} {
		if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName,
			costing(name, map[bool]string{true: "a"}[rest != ""], `,"tags":{"ticket":"7"}`+rest)); rec.Code != 200 {
			t.Fatalf("%s: %+v", name, p)
		}
		w.must("POST", "/v1/searches", aSearch(name, ""), nil)
		if name != "plain" {
			w.must("POST", "/v1/searches/"+name+"/ask", "{}", nil)
			w.must("POST", "/v1/searches/"+name+"/tell", `{"trial":0,"at":1,"value":2}`, nil)
		}
	}
	if rec, p := w.ask("POST", "/v1/jobs", auth.OwnerName, proposing("idea", `,"tags":{"ticket":"7"},"work":{"steps":9,"time":"1h"}`,
		`{"why":"w","value":"5","value_text":"words"}`)); rec.Code != 200 {
		t.Fatalf("proposal: %+v", p)
	}
	array := strings.Replace(costing("array", "a", `,"tags":{"ticket":"7"},"budget":{"dollars":"20"}`), "{", `{"array":"0-1",`, 1)
	if rec, p := w.ask("POST", "/v1/groups", auth.OwnerName, array); rec.Code != 200 {
		t.Fatalf("array: %+v", p)
	}
	model := strings.Replace(gated(folderWith(t, map[string]string{"data": "1"}), "1", pointGates), `"project":"p"`,
		`"project":"p","tags":{"ticket":"7"}`, 1)
	if rec, p := w.ask("POST", "/v1/groups", auth.OwnerName, model); rec.Code != 200 {
		t.Fatalf("pipeline: %+v", p)
	}
	b := &billed{world: w, begin: w.control.Now().UTC(), instances: []string{"i-unknown"}}
	for _, id := range w.booting(1) {
		w.event(core.AttemptStarted{Attempt: id, Message: 1}, time.Minute)
		b.instances = append(b.instances, w.instance(id))
	}
	stranger := b.line(0, bill.Compute, "2")
	stranger.Job = "plain"
	if code, _, p := b.imports(auth.OwnerName, rowsOf(b.line(1, bill.Compute, "9"), stranger)...); code != 200 {
		t.Fatalf("bill: %+v", p)
	}
	checked := 0
	ask := func(method, path, described, body string) {
		rec, _ := w.ask(method, path, auth.OwnerName, body)
		if described == "" { // a problem
			if rec.Code < 400 {
				t.Errorf("%s %s: %d, want a problem", method, path, rec.Code)
			}
		} else if rec.Code != http.StatusOK {
			if described != "/v1/jobs/{id}/outputs" {
				t.Errorf("%s %s: %d %s", method, path, rec.Code, rec.Body)
			}
			described = ""
		}
		schema := d.Components.Schemas["Problem"]
		if described != "" {
			content, ok := d.Paths[described][strings.ToLower(method)].Responses["200"].Content["application/json"]
			if !ok {
				return // not JSON
			}
			schema = content.Schema
		}
		var v any
		if err := json.Unmarshal(rec.Body.Bytes(), &v); err != nil {
			t.Errorf("%s %s: %v", method, path, err)
			return
		}
		checked++
		for _, wrong := range d.against(schema, v, "") {
			t.Errorf("%s %s: %s", method, path, wrong)
		}
	}
	for _, r := range table() {
		if r.Method != "GET" || r.Stream != "" || r.Role == 0 && r.Scope != open || r.Path == "/metrics" {
			continue
		}
		if !strings.Contains(r.Path, "{id}") {
			ask("GET", r.Path, r.Path, "")
			continue
		}
		ids := []string{"plain", "held", "rich"}
		if strings.HasPrefix(r.Path, "/v1/proposals/") {
			ids = []string{"idea"}
		}
		if strings.HasPrefix(r.Path, "/v1/engines/") {
			ids = []string{w.engines[0].Name}
		}
		if strings.HasPrefix(r.Path, "/v1/groups/") {
			ids = []string{"array", "retrain"}
		}
		if strings.HasPrefix(r.Path, "/v1/models/") {
			ids = []string{"retrain"}
		}
		for _, id := range ids {
			ask("GET", strings.ReplaceAll(r.Path, "{id}", id), r.Path, "")
		}
	}
	for _, by := range []string{"team", "project", "user", "kind", "job", "tag:ticket"} {
		ask("GET", "/v1/costs?by="+by+"&since=7d", "/v1/costs", "")
	}
	// with the limit that refuses
	ask("POST", "/v1/jobs", "", costing("much", "a", `,"tags":{"ticket":"7"},"budget":{"dollars":"900"}`))
	ask("POST", "/v1/jobs", "", "{}")
	ask("GET", "/v1/jobs/none", "", "")
	ask("GET", "/v1/jobs/rich/log?offset=x", "", "")
	ask("GET", "/v1/jobs/rich/log?offset=-1", "", "")
	ask("GET", "/v1/events?after=99999999", "", "")
	ask("POST", "/v1/tokens", "", `{"most":"none","life_ns":-1}`)
	if checked < 35 {
		t.Errorf("only %d answers were compared", checked)
	}
	t.Logf("%d answers compared", checked)
}
