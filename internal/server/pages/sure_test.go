package pages

import (
	"fmt"
	"html"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"scrimp/client"
)

var hiddenJob = regexp.MustCompile(`<input type="hidden" name="job" value="([^"]*)">`)

// A form for all jobs that match asks first. The question's own form names exactly the jobs that the action can change.
func TestForm_AllThatMatchAsksFirst(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	var list []client.Job
	var running []string
	for n := range 60 {
		j := client.Job{ID: fmt.Sprintf("lm-%02d", n), State: "running"}
		if n%3 == 0 {
			j.State = "succeeded"
		} else {
			running = append(running, j.ID)
		}
		f.answers["POST /v1/jobs/"+j.ID+"/end"] = client.Job{}
		list = append(list, j)
	}
	slices.Reverse(running) // newest first
	f.answers["/v1/jobs"] = list
	form := url.Values{"act": {"cancel"}, "all": {"?name=lm-%2A"}, "back": {"/jobs?name=lm-*"}}
	rec := asks(s, "POST", "/do", form.Encode())
	page := rec.Body.String()
	var named []string
	for _, m := range hiddenJob.FindAllStringSubmatch(page, -1) {
		named = append(named, html.UnescapeString(m[1]))
	}
	if rec.Code != 200 || !slices.Equal(named, running) || !strings.Contains(page, "Cancel 40 jobs?") ||
		!strings.Contains(page, "And 20 more jobs.") || strings.Contains(page, "lm-00") {
		t.Fatalf("%d, %d named:\n%s", rec.Code, len(named), page)
	}
	ended := func() (n int) {
		for _, a := range f.asked {
			if strings.HasPrefix(a, "POST ") {
				n++
			}
		}
		return n
	}
	if last := f.asked[len(f.asked)-1]; ended() != 0 || !strings.Contains(last, "live=1") || !strings.Contains(last, "name=lm-%2A") {
		t.Errorf("the question changes %d jobs and asks %s", ended(), last)
	}
	rec = asks(s, "POST", "/do", url.Values{"act": {"cancel"}, "job": named, "back": {"/jobs"}}.Encode())
	if rec.Code != 303 || ended() != len(running) {
		t.Errorf("%d, and %d of %d jobs end", rec.Code, ended(), len(running))
	}
}

func TestForm_AllThatMatchIsBounded(t *testing.T) {
	t.Parallel()
	f, s := newFake(t)
	for n, want := range map[int]string{
		0:            "no job that matches is in a state for this",
		mostBulk:     "Pause 500 jobs?",
		mostBulk + 1: "these are too many jobs for one form",
	} {
		list := make([]client.Job, n)
		for i := range list {
			list[i] = client.Job{ID: fmt.Sprint("j", i), State: "running"}
		}
		f.answers["/v1/jobs"] = list
		rec := asks(s, "POST", "/do", url.Values{"act": {"pause"}, "all": {"?"}}.Encode())
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%d jobs: %d %s", n, rec.Code, rec.Body)
		}
	}
	for _, form := range []url.Values{{"act": {"pause"}, "all": {"?a=%zz"}}, {"act": {"revoke"}, "all": {"?"}}, {"all": {"?"}}} {
		if rec := asks(s, "POST", "/do", form.Encode()); rec.Code < 400 || rec.Code >= 500 {
			t.Errorf("%v: %d", form, rec.Code)
		}
	}
}
