package state

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"testing"
	"time"

	"scrimp/internal/decide/plan"
	"scrimp/internal/test/must"
)

// Every kind of fact round-trips through the log. Unknown facts are refused.
func TestDecodeFacts_RoundTrips(t *testing.T) {
	facts := []Fact{
		JobQueued{Job: "j", Why: "retry", Retried: true}, ConfigSet{},
		Decided{Job: "j", Version: "v", Decision: plan.Decision{Why: plan.WaitsSpot, Slack: time.Hour, HasSlack: true}},
		InstanceClosed{Instance: "i", Until: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Cause: "interrupted", Lost: time.Minute, GivenUp: true},
	}
	text, err := EncodeFacts(facts)
	must.Do(t, err)
	back, err := DecodeFacts(text)
	if err != nil || !reflect.DeepEqual(back, facts) {
		t.Errorf("%v, %+v, want %+v", err, back, facts)
	}
	if _, err := DecodeFacts([]byte(`["from_the_future",{}]`)); err == nil {
		t.Error("an unknown fact is read")
	}
	if text, err := EncodeFacts(nil); err != nil || text != nil {
		t.Errorf("no facts are %q, %v", text, err)
	}
}

// Every type with a Fact method has a decoder. A missing one would be written to the log and keep the next start
// from reading it.
func TestFactKinds_AreComplete(t *testing.T) {
	var all []ast.Decl
	for _, name := range []string{"fact_kind.go", "group.go", "after.go", "archive.go", "archive_group.go", "preempt.go", "round.go",
		"schedule.go", "stage.go", "study.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		must.Do(t, err)
		all = append(all, file.Decls...)
	}
	n := 0
	for _, d := range all {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil || f.Name.Name != "Fact" {
			continue
		}
		n++
		lit := f.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit).Value
		if factKinds[lit[1:len(lit)-1]] == nil {
			t.Errorf("%s is not read back", lit)
		}
	}
	if n != len(factKinds) {
		t.Errorf("%d types of facts, %d are read", n, len(factKinds))
	}
}
