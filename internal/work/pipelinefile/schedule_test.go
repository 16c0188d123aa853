package pipelinefile

import (
	"strings"
	"testing"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/test/must"
	"scrimp/internal/work/retrain"
)

func TestSchedule_ReadsItsConditions(t *testing.T) {
	text := strings.Replace(ownFile, "parallel: 2", `parallel: 2
schedule:
  budget: $200
  on_data: s3://bucket/new
  at_least: 100
  not_before: price  <= $1.20
  by: 1d6h
  when_it_pays: {value_of_point: $50, metric: evaluate.accuracy, goal: minimize, point: "1", runs: 4, latest: 30d}`, 1)
	f, err := Parse("pipeline.yaml", []byte(text), now, read(nil))
	must.Do(t, err)
	w := f.Schedule.When
	if f.Schedule.Cron != retrain.Every || w.Data.Path != "s3://bucket/new" || w.Data.AtLeast != 100 {
		t.Errorf("%+v, %+v", f.Schedule, w.Data)
	}
	if got := w.Price.Most.Until(time.Hour); money.Short(got, money.USD) != "$1.20" || w.Price.By != 30*time.Hour {
		t.Errorf("%v, %+v", got, w.Price)
	}
	if p := w.Pays; money.Short(p.Value, money.USD) != "$50.00" || p.Stage != "evaluate" || p.Figure != "accuracy" || p.Point != "1" ||
		p.Goal != "minimize" || p.AtLeast != 4 || p.Latest != 30 {
		t.Errorf("%+v", p)
	}
}

// A secret in the webhook stays a template, which the server fills in; a value of the file wins over a secret.
func TestSchedule_LeavesSecretsOfItsWebhookToTheServer(t *testing.T) {
	parse := func(more string) (*File, error) {
		text := strings.Replace(ownFile, "parallel: 2", more+"schedule:\n  cron: 0 3 * * *\n  budget: $200\n"+
			"  notify: https://example.org/${TOKEN}/${where}", 1)
		return Parse("pipeline.yaml", []byte(text), now, read(nil))
	}
	f, err := parse("vars: [{where: here}]\n")
	if err != nil || f.Schedule.Notify != "https://example.org/${TOKEN}/here" {
		t.Errorf("%+v %v", f, err)
	}
	if f, err = parse("vars: [{where: here, TOKEN: known}]\n"); err != nil || f.Schedule.Notify != "https://example.org/known/here" {
		t.Errorf("%+v %v", f, err)
	}
	if _, err = parse(""); err == nil || !strings.Contains(err.Error(), "names ${where}, and there is no where") ||
		strings.Contains(err.Error(), "is \"\"") {
		t.Error(err)
	}
}

// The webhook of a stage takes secrets like that of a schedule, also from the defaults; a command does not.
func TestStage_LeavesSecretsOfItsWebhookToTheServer(t *testing.T) {
	text := "budget: $5\nsecrets: [TOKEN]\nvars: [{where: here}]\ndefaults: {notify: \"https://example.org/${TOKEN}\"}\n" +
		"stages:\n  a: {cmd: \"true\", outs: [a]}\n  b:\n    foreach: [x, y]\n    do:\n      cmd: \"true\"\n" +
		"      notify: {webhook: \"https://example.org/${where}/${item}/${TOKEN}\", on: [failed]}\n"
	f, err := Parse("pipeline.yaml", []byte(text), now, read(nil))
	must.Do(t, err)
	for name, want := range map[string]string{"a": "https://example.org/${TOKEN}", "b@y": "https://example.org/here/y/${TOKEN}"} {
		if got := f.Jobs[f.Spec.Find(name)].Notify.Webhook; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	_, err = Parse("pipeline.yaml", []byte(strings.Replace(text, "\"true\"", "\"echo ${TOKEN}\"", 1)), now, read(nil))
	if err == nil || !strings.Contains(err.Error(), "`stages.a.cmd` names ${TOKEN}, and there is no TOKEN") {
		t.Error(err)
	}
}

func TestSchedule_RefusesConditionsByName(t *testing.T) {
	for _, c := range []struct{ lines, want string }{
		{"on_data:", "`schedule.on_data` is no path"},
		{"on_data: [a]", "`schedule.on_data` is no single value"},
		{"at_least: 3", "`schedule.at_least` stands without on_data"},
		{"on_data: new\n  at_least: 0", "`schedule.at_least` is \"0\""},
		{"not_before: price <= $1", "`schedule.not_before` stands without by"},
		{"by: 6h", "`schedule.by` stands without not_before"},
		{"not_before: 03:00\n  by: 6h", "`schedule.not_before` is \"03:00\""},
		{"not_before: price <= -1\n  by: 6h", "`schedule.not_before` is"},
		{"not_before: price <= 1\n  by: ever", "`schedule.by` is \"ever\""},
		{"not_before: price <= 1\n  by: 8d", "`schedule.by` 192h0m0s"},
		{"when_it_pays: yes", "`schedule.when_it_pays` is no map"},
		{"when_it_pays: {metric: evaluate.a}", "`schedule.when_it_pays.value_of_point` write what a point"},
		{"when_it_pays: {value_of_point: x, metric: evaluate.a}", "`schedule.when_it_pays.value_of_point`"},
		{"when_it_pays: {value_of_point: 5, metric: evaluate.a, every: 1}", "`schedule.when_it_pays.every` is no field"},
		{"when_it_pays: {value_of_point: 5, metric: evaluate.a, latest: 36h}", "`schedule.when_it_pays.latest` is \"36h\""},
		{"when_it_pays: {value_of_point: 5, metric: evaluate.a, runs: 0}", "`schedule.when_it_pays.runs`"},
		{"on_drift: {}", "`schedule.on_drift`"},
		{"notify: ann@example.org", "`schedule.notify` is \"ann@example.org\""},
	} {
		text := strings.Replace(ownFile, "parallel: 2", "schedule:\n  cron: 0 3 * * *\n  "+c.lines, 1)
		_, err := Parse("pipeline.yaml", []byte(text), now, read(nil))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.lines, err, c.want)
		}
	}
}

func TestDrift_IsReadAndRefusedByName(t *testing.T) {
	parse := func(lines string) (*File, error) {
		text := strings.Replace(ownFile, "    deps: [data]\n    outs: [model]", "    deps: [data]\n    outs: [model]\n    wdir: sub\n"+lines, 1)
		text = strings.Replace(text, "    args: [python3, train.py]", "    cmd: python3 train.py", 1)
		return Parse("pipeline.yaml", []byte(strings.Replace(text, "outs: [data]", "outs: [sub/data]", 1)), now, read(nil))
	}
	f, err := parse("    on_drift: {file: data/new.csv, reference: ../old.csv, test: ks, above: 0.10, columns: [age, price]}")
	must.Do(t, err)
	s := f.Spec.Stages[f.Spec.Find("train")]
	if d := s.Drift; d.File != "sub/data/new.csv" || d.Reference != "old.csv" || d.Test != "ks" || d.Above != "0.10" || len(d.Columns) != 2 {
		t.Errorf("%+v", d)
	}
	if d := f.Spec.Stages[s.Needs[0]]; d.Name != "prepare" {
		t.Errorf("it comes after %s, want the stage that makes the file", d.Name)
	}
	for _, c := range []struct{ lines, want string }{
		{"on_drift: psi", "`stages.train.on_drift` is no map"},
		{"on_drift: {file: a, reference: b, test: psi}", `above is ""`},
		{"on_drift: {file: a, reference: b, test: chi, above: 1}", `test is "chi"`},
		{"on_drift: {file: a, reference: a, test: ks, above: 1}", "are the same file"},
		{"on_drift: {file: a, test: ks, above: 1}", "reference: give a path"},
		{"on_drift: {file: s3://b/a, reference: b, test: ks, above: 1}", "is an address"},
		{"on_drift: {file: a, reference: b, test: ks, above: -1}", `above is "-1"`},
		{"on_drift: {file: model/a, reference: b, test: ks, above: 1}", "the stage makes sub/model/a itself"},
		{"on_drift: {file: a, reference: b, test: ks, over: 1}", "`stages.train.on_drift.over` is no field"},
		{"on_drift: {file: a, reference: b, test: ks, above: 1, columns: [x, x]}", "there twice"},
	} {
		if _, err := parse("    " + c.lines); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.lines, err, c.want)
		}
	}
}
