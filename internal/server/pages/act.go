package pages

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"scrimp/client"
	"scrimp/internal/lib/money"
)

// action is a button of a page on a job, a group or a token; it sends a request to the API.
type action struct {
	Name, Text string
	Says       string // a sentence about what it does
	Command    string // the equivalent command
	method     string
	path       string // {id} stands for the job
	bulk       bool   // works on several jobs at once
	group      bool   // acts on a group
	states     []string
	least      client.Role // lowest role in the team; own lets submitters act on their own jobs
	own        bool
	body       func(form url.Values) any
	do         func(v *visit, job string, form url.Values) error // in place of one request
}

var (
	notOver = []string{"held", "queued", "running", "paused"}
	undone  = []string{"paused", "failed", "stopped", "cancelled"}

	groupOpen = []string{"awaits_approval", "open"}

	// bySearch lists the reasons of paused and ended trials that only their search may continue.
	bySearch = []string{"paused_by_search", "pruned", "search_over", "trained_in_full"}
)

// actions lists all actions of pages. The API decides what the reader may do; states and roles only decide whether a
// page shows the button.
var actions = []action{
	{Name: "stop", Text: "Stop", Says: "saves a checkpoint and ends the job", Command: "scrimp stop {id}",
		method: "POST", path: "/v1/jobs/{id}/end", bulk: true, states: notOver, least: client.Submitter, own: true,
		body: func(url.Values) any { return client.End{Save: true} }},
	{Name: "cancel", Text: "Cancel", Says: "ends the job at once, without saving", Command: "scrimp cancel {id}",
		method: "POST", path: "/v1/jobs/{id}/end", bulk: true, states: notOver, least: client.Submitter, own: true,
		body: func(url.Values) any { return client.End{} }},
	{Name: "pause", Text: "Pause", Says: "saves a checkpoint and gives the machine back until you resume",
		Command: "scrimp pause {id}", method: "POST", path: "/v1/jobs/{id}/pause", bulk: true,
		states: []string{"queued", "running"}, least: client.Submitter, own: true,
		body: func(f url.Values) any { return client.Pause{Force: f.Get("force") != ""} }},
	{Name: "resume", Text: "Resume", Says: "goes on from the newest checkpoint", Command: "scrimp resume {id}",
		method: "POST", path: "/v1/jobs/{id}/resume", bulk: true, states: undone, least: client.Submitter, own: true,
		body: func(f url.Values) any { return client.Resume{Changes: changes(f)} }},
	{Name: "rerun", Text: "Rerun", Says: "submits it again as a new job with the same files, which begins from nothing",
		Command: "scrimp rerun {id}", bulk: true, states: []string{"succeeded", "failed", "stopped", "cancelled"},
		least: client.Submitter, do: rerun},
	{Name: "change", Text: "Change", Says: "changes the deadline or the budget", Command: "scrimp update {id}",
		method: "PATCH", path: "/v1/jobs/{id}", states: notOver, least: client.Submitter, own: true,
		body: func(f url.Values) any {
			c := changes(f)
			c.AcceptLate = f.Get("late") != ""
			return c
		}},
	{Name: "approve", Text: "Approve", Says: "lets the job run", Command: "scrimp approve {id}", method: "POST",
		path: "/v1/jobs/{id}/approve", bulk: true, states: []string{"held"}, least: client.Operator,
		body: func(f url.Values) any { return client.Review{Reason: f.Get("reason")} }},
	{Name: "reject", Text: "Reject", Says: "ends the job, with your reason", Command: "scrimp reject {id}",
		method: "POST", path: "/v1/jobs/{id}/reject", states: []string{"held"}, least: client.Operator,
		body: func(f url.Values) any { return client.Review{Reason: f.Get("reason")} }},
	{Name: "stop-group", Text: "Stop", Says: "saves a checkpoint of each member and ends the group",
		Command: "scrimp stop {id}", method: "POST", path: "/v1/groups/{id}/end", group: true, states: groupOpen,
		least: client.Submitter, own: true, body: func(url.Values) any { return client.End{Save: true} }},
	{Name: "cancel-group", Text: "Cancel", Says: "ends the group and its members at once", Command: "scrimp cancel {id}",
		method: "POST", path: "/v1/groups/{id}/end", group: true, states: groupOpen, least: client.Submitter, own: true,
		body: func(url.Values) any { return client.End{} }},
	{Name: "approve-group", Text: "Approve", Says: "lets the group begin", Command: "scrimp approve {id}",
		method: "POST", path: "/v1/groups/{id}/approve", group: true, states: []string{"awaits_approval"},
		least: client.Operator, body: func(f url.Values) any { return client.Review{Reason: f.Get("reason")} }},
	{Name: "reject-group", Text: "Reject", Says: "ends the group, with your reason", Command: "scrimp reject {id}",
		method: "POST", path: "/v1/groups/{id}/reject", group: true, states: []string{"awaits_approval"},
		least: client.Operator, body: func(f url.Values) any { return client.Review{Reason: f.Get("reason")} }},
	{Name: "snooze-anomaly", Text: "Snooze", Says: "hides the incident, and later ones of its kind about the same",
		Command: "scrimp anomalies snooze {id} --until 7d", method: "POST", path: "/v1/anomalies/{id}/snooze",
		least: client.Operator, body: func(f url.Values) any { return client.SnoozeAnomaly{Until: f.Get("until")} }},
	{Name: "dismiss-anomaly", Text: "Dismiss", Says: "says that it was no problem, and raises the threshold of its kind " +
		"in the team", Command: "scrimp anomalies dismiss {id} --why TEXT", method: "POST",
		path: "/v1/anomalies/{id}/dismiss", least: client.Operator,
		body: func(f url.Values) any { return client.AnswerAnomaly{Why: f.Get("why")} }},
	{Name: "confirm-anomaly", Text: "Confirm", Says: "says that it was a problem, and lowers the threshold of its kind " +
		"in the team", Command: "scrimp anomalies confirm {id}", method: "POST", path: "/v1/anomalies/{id}/confirm",
		least: client.Operator, body: func(f url.Values) any { return client.AnswerAnomaly{Why: f.Get("why")} }},
	{Name: "take", Text: "Take", Says: "records that it is followed from now on, with its expected saving",
		Command: "scrimp recommend --take '{id}'", method: "POST", path: "/v1/recommend/take", least: client.Operator,
		body: func(f url.Values) any {
			return client.TakeRecommendation{Name: f.Get("job"), Team: f.Get("team"),
				Currency: money.Currency(f.Get("currency"))}
		}},
	{Name: "remove-bill", Text: "Remove", Says: "removes the bill; the ledger keeps what was booked of it until its " +
		"month is booked again", Command: "scrimp bill remove PROVIDER ACCOUNT MONTH --yes", method: "POST",
		path: "/v1/bills/remove", least: client.Admin, body: func(f url.Values) any {
			return client.RemoveBill{Provider: f.Get("provider"), Account: f.Get("account"), Month: f.Get("month")}
		}},
	{Name: "revoke", Text: "Revoke", Says: "ends the token", Command: "scrimp tokens revoke {id}", method: "DELETE",
		path: "/v1/tokens/{id}", bulk: true, body: func(url.Values) any { return nil }},
}

// changes reads new terms from a form. An empty field changes nothing.
func changes(f url.Values) (c client.Changes) {
	for name, to := range map[string]**string{"deadline": &c.Deadline, "budget": &c.Budget, "priority": &c.Priority} {
		if value := strings.TrimSpace(f.Get(name)); value != "" {
			*to = &value
		}
	}
	return c
}

func actionOf(name string) (action, bool) {
	at := slices.IndexFunc(actions, func(a action) bool { return a.Name == name })
	if at < 0 {
		return action{}, false
	}
	return actions[at], true
}

// role returns the reader's role in a team.
func (v *visit) role(team string) client.Role {
	role := client.Nobody
	for _, g := range v.me.Grants {
		if (g.Team == team || g.Team == client.Everywhere) && atLeast(g.Role, role) {
			role = g.Role
		}
	}
	if !atLeast(v.me.Best, role) { // the session has fewer rights than its user
		role = v.me.Best
	}
	return role
}

// may reports whether a page offers an action on a job to the reader.
func (v *visit) may(name string, j client.Job) bool {
	if name == "resume" && slices.Contains(bySearch, j.Why) {
		return false
	}
	a, known := actionOf(name)
	return known && v.can(a, j.State, j.User, j.Team)
}

// can reports whether a page offers an action on something in the given state, of a user and a team.
func (v *visit) can(a action, state, user, team string) bool {
	least := a.least
	if a.own && user != v.me.User {
		least = client.Operator
	}
	return slices.Contains(a.states, state) && atLeast(v.role(team), least)
}

// done is the result of an action on several jobs.
type done struct {
	Action action
	Done   []string
	Failed []failure
	Back   string
}

type failure struct {
	Job     string
	Problem *client.Problem
}

// mostBulk bounds the jobs that one form changes.
const mostBulk = 500

// perform runs the action on one job.
func (a *action) perform(v *visit, job string, form url.Values) error {
	if a.do != nil {
		return a.do(v, job, form)
	}
	_, err := v.ask(a.method, strings.ReplaceAll(a.path, "{id}", url.PathEscape(job)), a.body(form), nil)
	return err
}

// rerun submits a job again as it was submitted.
func rerun(v *visit, job string, _ url.Values) error {
	p := &submitPage{Rerun: job}
	err := p.again(v)
	if err == nil {
		_, err = p.send(v, nil)
	}
	return err
}

// do runs the action of a form on one job or several, and redirects to the form's page.
func (s *Site) do(w http.ResponseWriter, r *http.Request) {
	guard(w)
	if !s.mayPost(w, r) {
		return
	}
	v, err := s.visit(r)
	if err != nil {
		s.fail(w, r, v, err)
		return
	}
	a, known := actionOf(r.PostFormValue("act"))
	jobs := r.PostForm["job"]
	if match := r.PostFormValue("all"); known && match != "" {
		s.sure(w, r, v, a, match)
		return
	}
	switch {
	case !known:
		err = &client.Problem{Status: http.StatusBadRequest, Title: "the form asks for nothing that a page does"}
	case a.Name == "change" && changes(r.PostForm) == client.Changes{}:
		err = &client.Problem{Status: http.StatusUnprocessableEntity, Title: "the form changes nothing",
			Fix: "go back and fill in a new deadline or budget"}
	case len(jobs) == 0:
		err = &client.Problem{Status: http.StatusUnprocessableEntity, Title: "no job is chosen",
			Fix: "go back and mark the jobs first"}
	case len(jobs) > mostBulk || len(jobs) > 1 && !a.bulk:
		err = &client.Problem{Status: http.StatusUnprocessableEntity, Title: "these are too many jobs for one form",
			Fix: "mark fewer, or use " + a.Command}
	}
	if err != nil {
		s.fail(w, r, v, err)
		return
	}
	of := done{Action: a, Back: local(r.PostFormValue("back"))}
	for _, job := range jobs {
		if err := a.perform(v, job, r.PostForm); err != nil {
			of.Failed = append(of.Failed, failure{job, asProblem(err)})
			continue
		}
		of.Done = append(of.Done, job)
	}
	if len(of.Failed) == 0 {
		http.Redirect(w, r, of.Back, http.StatusSeeOther)
		return
	}
	status := http.StatusOK
	if len(of.Done) == 0 {
		status = of.Failed[0].Problem.Status
	}
	send(w, r, status, s.frame(v, page{file: "done", title: a.Text, still: true}, of))
}
