package docs

import (
	"strings"
	"testing"

	"scrimp/internal/cli"
	"scrimp/internal/server"
	"scrimp/internal/test/golden"
	"scrimp/internal/test/must"
)

// The pages of docs/reference match the code: go test ./internal/test/docs -update writes them.
func TestReference_MatchesTheCode(t *testing.T) {
	t.Setenv("SCRIMP_DATA", "~/.local/share/scrimp") // the reference must not contain this user's default
	api, err := API(server.OpenAPI(cli.Version))
	must.Do(t, err)
	exits, err := Constants(root+"/internal/cli/command", "Exit")
	must.Do(t, err)
	reasons, err := Constants(root+"/internal/decide/plan", "Reason")
	must.Do(t, err)
	codes, err := Constants(root+"/client", "Code")
	must.Do(t, err)
	answers, err := Answers(root + "/internal/server")
	must.Do(t, err)
	if len(exits) < 3 || len(reasons) < 30 || len(codes) == 0 || len(answers) < 60 {
		t.Fatalf("%d statuses, %d reasons, %d codes, %d answers: the code was not read", len(exits), len(reasons), len(codes), len(answers))
	}
	pages := map[string]string{
		"cli.md": CLI(cli.Root()), "api.md": api, "metrics.md": Metrics(),
		"errors.md": Errors(append([]Status{{"0", "done; of a job: it succeeded, or goes on while nobody watches"}}, exits...), answers,
			reasons, codes),
	}
	for name, text := range pages {
		golden.Check(t, "../../../../docs/reference/"+name, text)
	}
	for page, must := range map[string][]string{
		"cli.md": {"### scrimp run", "`--market file`", "### scrimp budgets set"}, "api.md": {"### POST /v1/jobs\n", "### Receipt\n"},
		"metrics.md": {"`scrimp_jobs`", "`scrimp_http_requests_total`"}, "errors.md": {"job_unknown", "### 402 Payment Required", "slack_gone"},
	} {
		for _, text := range must {
			if !strings.Contains(pages[page], text) {
				t.Errorf("%s does not say %q", page, text)
			}
		}
	}
}

// Every reason of a decision has a comment with its meaning.
func TestReference_ExplainsEveryReason(t *testing.T) {
	t.Parallel()
	reasons, err := Constants(root+"/internal/decide/plan", "Reason")
	must.Do(t, err)
	for _, r := range reasons {
		if r.Means == "" {
			t.Errorf("reason %s has no comment that says what it means", r.Name)
		}
	}
}
