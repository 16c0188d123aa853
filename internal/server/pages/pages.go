// Package pages serves the dashboard: HTML pages that show what the API returns.
//
// A page calls the API in process, with the reader's credentials. So a page shows and does exactly what its reader
// may, and each page has an equivalent in the API.
package pages

import (
	"bytes"
	"net/http"
	"time"

	"scrimp/client"
)

// Site serves the pages.
type Site struct {
	API http.Handler // the handler that serves programs, too
	// Owner gives a request the rights of the data folder's owner; nil on a shared server.
	Owner func(*http.Request) *http.Request
	// Changed returns a channel that closes at the next change.
	Changed func() <-chan struct{}
	// Stream counts one more open stream, or returns an error if there are too many.
	Stream func(caller string) (end func(), err error)
	Now    func() time.Time
	// Provider also signs readers in, on a shared server; nil: none.
	Provider Provider

	links links // links that open this site, and the sessions that they became
	pace  renderPace
}

// page describes one page.
type page struct {
	path    string // pattern of the address
	file    string // template
	title   string
	nav     string      // name in the navigation; "": not listed
	section string      // group in the navigation; "": the page stands alone
	key     string      // letters for its key, best first; "": those of nav
	least   client.Role // lowest role that the reader must have in any team
	twin    string      // API path with the same data; {id} stands for the job or group
	command string      // the equivalent command
	request string      // requests of the API that do what the page does, where it has no twin
	still   bool        // the page does not update itself
	fill    func(*visit) (any, error)
}

// list returns every page in the order of the navigation.
func list() []page {
	return []page{
		{path: "/{$}", file: "overview", title: "Overview", nav: "Overview", twin: "/v1/costs",
			command: "scrimp costs", fill: overview},
		{path: "/jobs", file: "jobs", title: "Jobs", nav: "Jobs", section: "Jobs", twin: "/v1/jobs",
			command: "scrimp jobs", fill: jobs},
		{path: "/submit", file: "submit", title: "Submit a job", nav: "Submit", still: true,
			request: planRequests, command: "scrimp plan job.yaml, then scrimp run job.yaml", fill: submitForm},
		{path: "/jobs/{id}", file: "job", title: "Job", section: "Jobs", twin: "/v1/jobs/{id}",
			command: "scrimp status {id}", fill: job},
		{path: "/jobs/{id}/diagnosis", file: "diagnosis", title: "Diagnosis", section: "Jobs",
			twin: "/v1/jobs/{id}/diagnosis", command: "scrimp diagnose {id}", fill: diagnosisOf},
		{path: "/groups", file: "groups", title: "Groups", nav: "Groups", section: "Jobs", twin: "/v1/groups",
			command: "scrimp groups", fill: groups},
		{path: "/groups/{id}", file: "group", title: "Group", section: "Jobs", twin: "/v1/groups/{id}",
			command: "scrimp status {id}", fill: group},
		{path: "/costs", file: "costs", title: "Costs", nav: "Costs", section: "Costs", twin: "/v1/costs",
			command: "scrimp costs", fill: costs},
		{path: "/costs/days", file: "days", title: "Costs by day", nav: "By day", section: "Costs", key: "h",
			twin: "/v1/why", command: "scrimp costs", still: true, fill: days},
		{path: "/chargeback", file: "chargeback", title: "Statements", nav: "Statements", section: "Costs", key: "n",
			twin: "/v1/chargeback", command: "scrimp chargeback", fill: chargebackOf},
		{path: "/review", file: "review", title: "Review", nav: "Review", section: "Costs", key: "f", twin: "/v1/review",
			command: "scrimp review", still: true, fill: reviewOf},
		{path: "/bills", file: "bills", title: "Bills", nav: "Bills", section: "Costs", twin: "/v1/bills",
			command: "scrimp bill list", still: true, fill: billsOf},
		{path: "/recommend", file: "recommend", title: "Recommendations", nav: "Savings", section: "Savings",
			key: "vd", twin: "/v1/recommend", command: "scrimp recommend", still: true, fill: recommendOf},
		{path: "/waste", file: "waste", title: "Waste", nav: "Waste", section: "Savings", twin: "/v1/waste",
			command: "scrimp waste", fill: wasteOf},
		{path: "/diagnoses", file: "diagnoses", title: "Diagnoses", nav: "Diagnoses", section: "Savings", key: "u",
			twin: "/v1/diagnoses", command: "scrimp diagnose --team TEAM", still: true, fill: diagnosesOf},
		{path: "/proposals", file: "proposals", title: "Proposals", nav: "Proposals", section: "Jobs", key: "z",
			twin: "/v1/proposals", command: "scrimp proposals", still: true, fill: proposalsOf},
		{path: "/storage", file: "storage", title: "Storage", nav: "Storage", section: "Savings", key: "r",
			twin: "/v1/storage", command: "scrimp storage", still: true, fill: storageOf},
		{path: "/cache", file: "cache", title: "Outputs of stages", section: "Savings", twin: "/v1/cache",
			command: "scrimp pipeline cache", still: true, fill: cacheOf},
		{path: "/anomalies", file: "anomalies", title: "Anomalies", nav: "Anomalies", section: "Savings", key: "y",
			twin: "/v1/anomalies", command: "scrimp anomalies", still: true, fill: anomaliesOf},
		{path: "/machines", file: "machines", title: "Machines", nav: "Machines", section: "Machines",
			twin: "/v1/machines", command: "scrimp machines", fill: machines},
		{path: "/engines", file: "engines", title: "Engines", nav: "Engines", section: "Machines", twin: "/v1/server",
			command: "scrimp engine list", fill: engines},
		{path: "/market", file: "market", title: "Market", nav: "Market", section: "Machines", twin: "/v1/market",
			command: "scrimp market", fill: marketNow},
		{path: "/market/prices", file: "prices", title: "Prices", section: "Machines", twin: "/v1/history",
			command: "scrimp market record", still: true, fill: prices},
		{path: "/models", file: "models", title: "Models", nav: "Models", section: "Jobs", twin: "/v1/models",
			command: "scrimp models", fill: models},
		{path: "/teams", file: "teams", title: "Teams", nav: "Teams", section: "Teams", twin: "/v1/teams",
			command: "scrimp teams", fill: teams},
		{path: "/estimates", file: "estimates", title: "Estimates", nav: "Estimates", section: "Costs",
			twin: "/v1/measured?expected=1", command: "scrimp estimate --accuracy", fill: estimates},
		{path: accessPath, file: "access", title: "Access", nav: "Access", section: "Teams", key: "x",
			twin: "/v1/tokens", command: "scrimp tokens", fill: access},
	}
}

// Routes returns the handlers of the site by pattern. None of them needs a token.
func (s *Site) Routes() map[string]http.HandlerFunc {
	all := map[string]http.HandlerFunc{
		"GET /assets/{name}":  s.asset,
		"GET /live":           s.live,
		"GET /sign-in":        s.signInPage,
		"POST /sign-in":       s.signIn,
		"POST /sign-out":      s.signOut,
		"GET /open":           s.open,
		"GET /data/{path...}": s.data,
		"POST /do":            s.do,
		"POST /submit":        s.submit,
		"GET /costs.csv":      s.costsCSV,
		"GET /chargeback.csv": s.chargebackCSV,
	}
	if s.Provider != nil {
		all["GET "+beginPath], all["GET "+backPath] = s.beginAway, s.backFrom
	}
	for _, p := range list() {
		all["GET "+p.path] = func(w http.ResponseWriter, r *http.Request) { s.show(w, r, p) }
	}
	return all
}

// Handler serves the site by itself, at a loopback address.
func (s *Site) Handler() http.Handler {
	mux := http.NewServeMux()
	for pattern, do := range s.Routes() {
		mux.HandleFunc(pattern, do)
	}
	return mux
}

// show sends a page.
func (s *Site) show(w http.ResponseWriter, r *http.Request, p page) {
	guard(w)
	v, err := s.visit(r)
	if err == nil {
		var body []byte
		if body, err = v.render(p); err == nil {
			send(w, r, http.StatusOK, body)
			return
		}
	}
	s.fail(w, r, v, err)
}

// fail sends an error page. A reader who is not signed in gets the sign-in page.
func (s *Site) fail(w http.ResponseWriter, r *http.Request, v *visit, err error) {
	problem := asProblem(err)
	if problem.Status == http.StatusUnauthorized {
		http.Redirect(w, r, signInAddress(r), http.StatusSeeOther)
		return
	}
	send(w, r, problem.Status, s.frame(v, page{file: "problem", title: "Not possible", still: true}, problem))
}

// render fills a page and renders it.
func (v *visit) render(p page) ([]byte, error) {
	data, err := p.fill(v)
	if err != nil {
		return nil, err
	}
	return v.site.write(v, p, data)
}

// main returns the part of a page that changes.
func main(body []byte) []byte {
	from, to := bytes.Index(body, []byte("<main")), bytes.Index(body, []byte("</main>"))
	if from < 0 || to < from {
		return nil
	}
	body = body[from:to]
	return body[bytes.IndexByte(body, '>')+1:]
}
