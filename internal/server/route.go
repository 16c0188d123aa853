package server

import (
	"net/http"
	"slices"
	"time"

	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/agents"
	"scrimp/internal/server/artifacts"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/bills"
	"scrimp/internal/server/datause"
	"scrimp/internal/server/jobs"
	"scrimp/internal/server/jobs/exec"
	"scrimp/internal/server/jobs/output"
	"scrimp/internal/server/jobs/update"
	"scrimp/internal/server/joining"
	"scrimp/internal/server/openapi"
	"scrimp/internal/server/people"
	"scrimp/internal/server/planning"
	"scrimp/internal/server/receipts"
	"scrimp/internal/server/reply"
	"scrimp/internal/server/retention"
	"scrimp/internal/server/submit"
	"scrimp/internal/server/telemetry"
	"scrimp/internal/server/workdir"
	"scrimp/internal/store/backup"
	"scrimp/internal/wire/api"
)

// The scopes of routes, under the names that the table uses.
const (
	open       = auth.Open
	anyTeam    = auth.AnyTeam
	allTeams   = auth.AllTeams
	ofJob      = auth.OfJob
	ofOwnJob   = auth.OfOwnJob
	bootstraps = auth.Bootstraps
	machines   = auth.Machines
	attempts   = auth.Attempts
	joiners    = auth.Joiners
)

// route is a row of the table of routes.
type route struct {
	Method, Path string
	Role         identity.Role // lowest role that may call it; Nobody for open routes and those of agents
	Scope        auth.Scope
	Reads        bool // changes nothing, so the audit trail has only refusals
	Does         string
	In, Out      any      // zero values of the request and response types; nil: no body, []byte: a file in gzip
	Stream       string   // media type of a response that is not one JSON value
	Query        []string // "NAME: description"
	do           handler
}

// handler implements a route.
type handler func(*Server, http.ResponseWriter, *http.Request)

// access returns the access rules of the route.
func (t route) access() auth.Access {
	return auth.Access{Route: t.Method + " " + t.Path, Role: t.Role, Scope: t.Scope, Reads: t.Reads,
		Probe: t.Path == "/healthz" || t.Path == "/readyz", Stream: t.Stream != "",
		Archive: t.Stream == "application/gzip" && t.Scope == ofJob || t.Stream == "text/csv"}
}

// OpenAPI returns the OpenAPI document for every route of the table.
func OpenAPI(version string) []byte {
	var list []openapi.Route
	for _, t := range table() {
		list = append(list, openapi.Route{Method: t.Method, Path: t.Path, Access: t.access(), Does: t.Does, In: t.In,
			Out: t.Out, Stream: t.Stream, Query: t.Query})
	}
	return openapi.Describe(version, list)
}

func (s *Server) getOpenAPI(w http.ResponseWriter, r *http.Request) { s.openAPI.ServeHTTP(w, r) }

// table returns every route and its access rules.
func table() []route {
	return slices.Concat(serverRoutes(), moneyRoutes(), billRoutes(), savingRoutes(), anomalyRoutes(), proposalRoutes(),
		jobRoutes(), keptRoutes(), groupRoutes(), searchRoutes(), diagnosisRoutes(), execRoutes(), peopleRoutes(),
		agentRoutes())
}

// serverRoutes describe the server and its market.
func serverRoutes() []route {
	return []route{
		{"GET", "/healthz", 0, open, true, "Say that the process is alive", nil, nil, "text/plain", nil, (*Server).getHealth},
		{"GET", "/readyz", 0, open, true, "Say whether this server leads and writes: 200, else 503", nil, nil, "text/plain",
			nil, (*Server).getReady},

		{"GET", "/v1/openapi.json", 0, open, true, "Describe this API", nil, api.Raw{}, "", nil, (*Server).getOpenAPI},
		{"GET", "/metrics", identity.Viewer, allTeams, true, "Show metrics for Prometheus", nil, nil, "text/plain", nil,
			func(s *Server, w http.ResponseWriter, r *http.Request) { s.metrics.Get(w, r) }},

		{"GET", "/v1/me", identity.Nobody, anyTeam, true, "Say whose token this is", nil, api.Me{}, "", nil,
			ofPeople((*people.Service).Me)},
		{"GET", "/v1/server", identity.Viewer, anyTeam, true, "Say who answers", nil, api.Server{}, "", nil,
			(*Server).getServer},
		{"POST", "/v1/server/stop", identity.Admin, allTeams, false, "End the server", api.StopServer{}, nil, "",
			nil, (*Server).postStop},
		{"POST", "/v1/dashboard", identity.Admin, allTeams, false,
			"Say where the dashboard is; the server of one user begins to serve it, and adds a key that opens it once", nil,
			api.Dashboard{}, "", nil, (*Server).postDashboard},
		{"GET", "/v1/machines", identity.Viewer, anyTeam, true, "List the machines that cost something now", nil,
			[]api.Machine{}, "", nil, (*Server).getMachines},
		{"GET", "/v1/engines/{id}/findings", identity.Admin, allTeams, true,
			"Try what jobs will need of an engine, as scrimp doctor ENGINE does", nil, []client.Finding{}, "", nil,
			ofJoining((*joining.Service).Findings)},
		{"GET", "/v1/telemetry", identity.Viewer, anyTeam, true, "List what the machines of running jobs do now", nil,
			[]client.JobTelemetry{}, "", nil, ofTelemetry((*telemetry.Service).List)},
		{"GET", "/v1/instances/undecided", identity.Admin, allTeams, true,
			"List machines of an earlier incarnation whose owner nobody has decided", nil, []api.Undecided{}, "", nil,
			(*Server).getUndecided},
		{"POST", "/v1/instances/decide", identity.Admin, allTeams, false,
			"Adopt or release machines of an earlier incarnation; answer with those that were decided", api.Ownership{},
			[]api.Undecided{}, "", nil, (*Server).postDecide},
		{"GET", "/v1/market", identity.Viewer, anyTeam, true, "List offers with their prices", nil, api.Market{}, "", nil,
			(*Server).getMarket},
		{"POST", "/v1/plan", identity.Viewer, anyTeam, true,
			"Simulate a job on the market as scrimp plan does, and submit nothing; the body may be the job file as YAML",
			client.PlanRequest{}, client.Plan{}, "", nil, ofPlanning((*planning.Service).Plan)},
		{"GET", "/v1/history", identity.Viewer, anyTeam, true,
			"Show the recorded market, and the jobs that are over", nil, api.History{}, "", nil,
			ofReceipts((*receipts.Service).History)},
		{"GET", "/v1/measured", identity.Viewer, anyTeam, true, "List what runs that are over have measured, newest first",
			nil, []client.Run{}, "", []string{"name: of the job, whose profiles count as well",
				"limit: at most this many runs, 1 to 1000 (default: 200)",
				"expected: 1 to add what they were expected to cost when they were first decided"},
			ofReceipts((*receipts.Service).Measured)},
		{"GET", "/v1/ledger/verify", identity.Operator, allTeams, true, "Replay the log and compare the ledger with it",
			nil, api.Verified{}, "", nil, ofReceipts((*receipts.Service).Verify)},

		{"GET", "/v1/jobs/{id}/data", identity.Viewer, ofJob, true,
			"Show what bringing inputs to the machines of a job took, and what the caches of the machines saved", nil,
			client.DataUse{}, "", nil, ofDataUse((*datause.Service).Data)},
		{"GET", "/v1/backup", identity.Admin, allTeams, true, "Fetch all that the store holds, as scrimp restore reads it",
			nil, nil, "application/gzip", nil, (*Server).getBackup},
		{"POST", "/v1/gc", identity.Admin, allTeams, false,
			"Remove what jobs that are over have left, once it is old enough, or say what would go", client.GC{},
			client.GCDone{}, "", nil, ofRetention((*retention.Service).GC)},
		{"GET", "/v1/cache", identity.Viewer, anyTeam, true, "List the kept outputs of pipeline stages, those with the " +
			"most value per byte first", nil, client.Cache{}, "", nil, ofRetention((*retention.Service).Cache)},
		{"GET", "/v1/storage", identity.Viewer, anyTeam, true,
			"Show what the server keeps by kind and by team, and the paths that job files of live jobs name", nil,
			client.Storage{}, "", nil, ofRetention((*retention.Service).Storage)},
		{"GET", "/v1/events", identity.Viewer, anyTeam, true, "Show jobs as they change, as server-sent events named job",
			nil, api.Job{}, "text/event-stream",
			[]string{"after: begin after this event (default: the header Last-Event-ID, else now)"},
			ofJobs((*jobs.Service).Events)},
	}
}

// jobRoutes manage jobs.
func jobRoutes() []route {
	return []route{
		{"POST", "/v1/work", identity.Submitter, anyTeam, false,
			"Send a work folder, a tar file in gzip, for a submission that follows", []byte{}, api.Work{}, "", nil,
			ofUploads((*workdir.Uploads).Take)},
		{"POST", "/v1/jobs", identity.Submitter, anyTeam, false, "Submit a job", api.Submission{}, api.Job{}, "",
			[]string{"work: as in the body, for a job file that is sent alone", "rerun: the same", "from: the same",
				"accept_unproven: 1 for true", "accept_wait: 1 for true"}, ofSubmit((*submit.Service).One)},
		{"POST", "/v1/jobs/batch", identity.Submitter, anyTeam, false,
			"Submit 1 to 1000 jobs without work folders or secrets, all or none", []api.Submission{}, []api.Job{}, "",
			nil, ofSubmit((*submit.Service).Many)},
		{"GET", "/v1/jobs", identity.Viewer, anyTeam, true,
			"List jobs, newest last; the header Scrimp-Next names the next page", nil, []api.Job{}, "",
			slices.Concat([]string{"after: id of the job that a page begins after; empty for the first page",
				"limit: at most this many jobs, 1 to 1000 (default: all; with before 1000)",
				"before: id of the job that a page ends before; empty for a page of the newest",
				"sort: pages by spent, rate, deadline, name or state; equal ones newest first"}, jobFilters),
			ofJobs((*jobs.Service).List)},
		totalsRoute(),
		{"GET", "/v1/jobs/{id}", identity.Viewer, ofJob, true, "Show a job", nil, api.Job{}, "", nil,
			ofJobs((*jobs.Service).Get)},
		{"GET", "/v1/jobs/{id}/watch", identity.Viewer, ofJob, true,
			"Show a job at each change, a line each, until it is closed", nil, api.Job{}, "application/x-ndjson", nil,
			ofJobs((*jobs.Service).Watch)},
		{"POST", "/v1/jobs/{id}/end", identity.Submitter, ofOwnJob, false, "End a job", api.End{}, api.Job{}, "", nil,
			ofJobs((*jobs.Service).End)},
		{"PATCH", "/v1/jobs/{id}", identity.Submitter, ofOwnJob, false, "Change the terms of a job that is not over",
			api.Changes{}, api.Job{}, "", nil, ofUpdate((*update.Service).Change)},
		{"POST", "/v1/jobs/{id}/pause", identity.Submitter, ofOwnJob, false,
			"Save, give the machine back, and wait until the job is resumed", api.Pause{}, api.Job{}, "", nil,
			ofUpdate((*update.Service).Pause)},
		{"POST", "/v1/jobs/{id}/resume", identity.Submitter, ofOwnJob, false,
			"Resume a job that is paused, or has ended without success", api.Resume{}, api.Job{}, "", nil,
			ofUpdate((*update.Service).Resume)},
		{"POST", "/v1/jobs/{id}/approve", identity.Operator, ofJob, false, "Approve a job that waits for approval",
			api.Review{}, api.Job{}, "", nil, ofJobs((*jobs.Service).Approve)},
		{"POST", "/v1/jobs/{id}/reject", identity.Operator, ofJob, false, "End a job that waits for approval, and say why",
			api.Review{}, api.Job{}, "", nil, ofJobs((*jobs.Service).Reject)},
		{"GET", "/v1/jobs/{id}/log", identity.Viewer, ofJob, true, "Print the output of a job, over all its attempts", nil,
			nil, "text/plain", []string{"offset: bytes to leave out", "follow: 1 to go on until the job is closed",
				"node: number of the machine in its gang, from 0 (default: 0); all: of all, with its number " +
					"before each line", "tail: at most this many last lines of each machine (default: all)",
				"since: what arrived at that time of the wall or later, such as 2026-12-01T18:00:00Z",
				"timestamps: 1 for the time at which it arrived before each line",
				"attempts: 1 for a line between attempts that says why the next one began",
				"format: json for an object a line, with node, attempt, at and line"},
			ofOutput((*output.Service).Output)},
		{"GET", "/v1/jobs/{id}/receipt", identity.Viewer, ofJob, true, "Show what a job cost, and why",
			nil, client.Receipt{}, "", nil, ofReceipts((*receipts.Service).Receipt)},
		{"GET", "/v1/jobs/{id}/telemetry", identity.Viewer, ofJob, true,
			"Show what the machines of an attempt were measured to do, over time", nil, client.Telemetry{}, "",
			[]string{"attempt: number of the job's attempt, from 1 (default: the newest measured one)",
				"last: list the values of the last span, such as 15m (default: all)"},
			ofTelemetry((*telemetry.Service).Get)},
		{"GET", "/v1/jobs/{id}/metric", identity.Viewer, ofJob, true, "List the values of the metric that judges a job", nil,
			api.MetricValues{}, "", nil, ofReceipts((*receipts.Service).Metric)},
		{"GET", "/v1/jobs/{id}/curves", identity.Viewer, ofJob, true, "Sample every metric that the job reports", nil,
			client.Curves{}, "", nil, ofReceipts((*receipts.Service).Curves)},
		{"GET", "/v1/jobs/{id}/spec", identity.Viewer, ofJob, true, "Show the job file as it was validated", nil, api.Raw{},
			"", nil, ofJobs((*jobs.Service).Spec)},
		{"GET", "/v1/jobs/{id}/explain", identity.Viewer, ofJob, true, "List the decisions about a job", nil,
			[]api.Decision{}, "", nil, ofReceipts((*receipts.Service).Explain)},
	}
}

// keptRoutes show and fetch what jobs keep.
func keptRoutes() []route {
	return []route{
		{"GET", "/v1/jobs/{id}/outputs", identity.Viewer, ofJob, true,
			"Fetch the outputs that a job has kept, as a tar file in gzip", nil, nil, "application/gzip",
			[]string{"node: number of the machine in its gang, from 0 (default: 0)"},
			ofKept((*artifacts.Kept).Outputs)},
		{"GET", "/v1/jobs/{id}/kept", identity.Viewer, ofJob, true, "List the outputs that a job's machines have kept", nil,
			[]api.Outputs{}, "", nil, ofKept((*artifacts.Kept).List)},
		{"GET", "/v1/jobs/{id}/contents", identity.Viewer, ofJob, true,
			"List the files of a job's kept outputs and checkpoints with the digests of their contents", nil,
			client.Contents{}, "", []string{"least: bytes of the smallest file (default: 1048576)"},
			ofKept((*artifacts.Kept).Contents)},
		{"GET", "/v1/jobs/{id}/checkpoints", identity.Viewer, ofJob, true, "List a job's checkpoints, newest first", nil,
			[]api.Checkpoint{}, "", nil, ofKept((*artifacts.Kept).Checkpoints)},
		{"GET", "/v1/jobs/{id}/checkpoints/{name}", identity.Viewer, ofJob, true,
			"Fetch the files of a checkpoint, as a tar file in gzip; the name latest is the newest", nil, nil,
			"application/gzip", nil, ofKept((*artifacts.Kept).Checkpoint)},
		{"DELETE", "/v1/jobs/{id}/checkpoints/{name}", identity.Submitter, ofOwnJob, false,
			"Remove a checkpoint of a job that holds no machine", nil, nil, "", nil, ofKept((*artifacts.Kept).RemoveCheckpoint)},
	}
}

// execRoutes run commands on the machines of jobs.
func execRoutes() []route {
	return []route{
		{"POST", "/v1/jobs/{id}/exec", identity.Submitter, ofOwnJob, false,
			"Run a command on a machine of the job, or begin a session",
			api.Exec{}, api.ExecResult{}, "", nil, ofExec((*exec.Service).Execute)},
		{"GET", "/v1/jobs/{id}/exec/{session}", identity.Submitter, ofJob, true,
			"Follow a session that the caller has begun, a piece of output a line; it ends when nobody follows it", nil,
			api.ExecOutput{}, "application/x-ndjson", nil, ofExec((*exec.Service).Follow)},
		{"POST", "/v1/jobs/{id}/exec/{session}", identity.Submitter, ofJob, true,
			"Send input to a session that the caller has begun, or the size of its terminal", api.ExecInput{}, nil, "", nil,
			ofExec((*exec.Service).Type)},
	}
}

// peopleRoutes manage users and their rights, and read the audit trail.
func peopleRoutes() []route {
	return []route{
		{"GET", "/v1/users", identity.Admin, allTeams, true, "List users", nil, []client.User{}, "", nil,
			ofPeople((*people.Service).Users)},
		{"PUT", "/v1/users/{id}", identity.Admin, allTeams, false, "Make a user, or change one", api.SetUser{},
			client.User{}, "", nil, ofPeople((*people.Service).PutUser)},
		{"POST", "/v1/users/{id}/erase", identity.Admin, allTeams, false, "Forget the name and the address of a user",
			api.EraseUser{}, api.Erasure{}, "", nil, ofPeople((*people.Service).Erase)},
		{"GET", "/v1/teams", identity.Viewer, anyTeam, true, "List the teams that the caller sees", nil, []client.Team{},
			"", nil, ofPeople((*people.Service).Teams)},
		{"PUT", "/v1/teams/{id}", identity.Admin, allTeams, false, "Make a team, or change its projects", api.SetTeam{},
			client.Team{}, "", nil, ofPeople((*people.Service).PutTeam)},
		{"GET", "/v1/tokens", identity.Viewer, anyTeam, true, "List tokens: the caller's own, and for an admin all", nil,
			[]api.Token{}, "", nil, ofPeople((*people.Service).Tokens)},
		{"POST", "/v1/tokens", identity.Viewer, anyTeam, false, "Make a token: for oneself, and for an admin for all",
			api.NewToken{}, api.MadeToken{}, "", nil, ofPeople((*people.Service).MakeToken)},
		{"DELETE", "/v1/tokens/{id}", identity.Viewer, anyTeam, false, "Revoke a token: one's own, and for an admin any",
			nil, nil, "", nil, ofPeople((*people.Service).RevokeToken)},
		{"GET", "/v1/notices", identity.Admin, allTeams, true, "List the reports of notify that are being retried", nil,
			[]client.Notice{}, "", nil, (*Server).getNotices},
		{"GET", "/v1/audit", identity.Admin, allTeams, true, "List who did what, oldest first", nil, api.Audit{},
			"", []string{"after: event number that a page begins after", "user: of one user",
				"limit: at most this many lines, 1 to 1000 (default: 200)"}, ofPeople((*people.Service).Audit)},
	}
}

const nodeOfToken = "node: of the machine in its gang, as the token has it (default: 0)"

// agentRoutes serve the agents on machines.
func agentRoutes() []route {
	return []route{
		{"GET", "/v1/agent/join", 0, joiners, true,
			"Join as a machine of one's own: the connection is upgraded to scrimp-hostd-1, lines of JSON by which the server " +
				"asks for what the machine runs", nil, nil, "application/x-ndjson", nil, ofJoining((*joining.Service).Join)},
		{"POST", "/v1/agent/identify", 0, open, false,
			"Show by what the provider signs which machine this is; answer with the token by which it registers",
			api.Identification{}, api.Identified{}, "", nil, ofJoining((*joining.Service).Identify)},
		{"GET", "/v1/program/{hash}", 0, open, true,
			"Fetch the server's program by its SHA-256, as a machine that begins does", nil, nil,
			"application/octet-stream", nil, ofJoining((*joining.Service).Program)},
		{"POST", "/v1/agent/register", 0, bootstraps, false, "Register a machine's public key, once", api.Registration{},
			api.Registered{}, "", nil, ofAgents((*agents.Service).Register)},
		{"POST", "/v1/agent/pull", 0, machines, false, "Wait for tasks to begin", api.Pull{}, api.Pulled{}, "", nil,
			ofAgents((*agents.Service).Pull)},
		{"GET", "/v1/agent/binary", 0, machines, true, "Fetch the server's program", nil, nil, "application/octet-stream",
			[]string{"os: of the machine, as Go names it", "arch: of the machine, as Go names it"},
			ofAgents((*agents.Service).Binary)},
		{"POST", "/v1/agent/report", 0, attempts, false, "Report what happened, and fetch orders", api.Report{}, api.Orders{},
			"", nil, ofAgents((*agents.Service).Report)},
		{"POST", "/v1/agent/logs", 0, attempts, false, "Append output", nil, api.LogEnd{}, "",
			[]string{"offset: of the first byte", nodeOfToken}, ofAgents((*agents.Service).Logs)},
		{"GET", "/v1/agent/logs", 0, attempts, true, "Ask how much of the output is kept", nil, api.LogEnd{}, "",
			[]string{nodeOfToken}, ofAgents((*agents.Service).LogEnd)},
		{"POST", "/v1/agent/exec/{id}", 0, attempts, false, "Hand in what a command printed", api.ExecResult{}, nil, "", nil,
			ofAgents((*agents.Service).Executed)},
		{"GET", "/v1/agent/exec/{id}/input", 0, attempts, true, "Wait for input of a session; 404 ends it", nil,
			api.SessionInput{}, "", []string{"offset: of the first byte that the agent has not"},
			ofAgents((*agents.Service).SessionInput)},
		{"POST", "/v1/agent/exec/{id}/output", 0, attempts, true, "Hand in output of a session; 404 ends it", nil, nil, "",
			[]string{"offset: of the first byte"}, ofAgents((*agents.Service).SessionOutput)},
		searchCallRoute(),
		{"GET", "/v1/agent/credentials", 0, attempts, true,
			"Fetch credentials for the job's own prefix of the bucket in which it keeps its checkpoints",
			nil, api.StoreCredentials{}, "", nil, ofAgents((*agents.Service).Credentials)},
		{"GET", "/v1/agent/work", 0, attempts, true, "Fetch the job's work folder, as a tar file", nil, nil,
			"application/x-tar", []string{"offset: bytes of the tar file to leave out, with its ETag as If-Match",
				"light: 1 leaves out the contents of files of 1 MiB or more, and names their SHA-256",
				"content: the SHA-256 of a file of the folder, to send instead of the tar file"},
			ofAgents((*agents.Service).Work)},
		{"GET", "/v1/agent/work/blob", 0, attempts, true,
			"Ask where in the job's bucket its work folder lies; no hash: the server sends it", nil, api.WorkBlob{}, "",
			[]string{"refused: why what it was told before was not taken: missing, damaged or away"},
			ofAgents((*agents.Service).WorkBlob)},
		{"GET", "/v1/agent/blobs", 0, attempts, true, "Fetch one of the job's blobs, or a range of it", nil, nil,
			"application/octet-stream", []string{"key: of the blob, jobs/JOB/ and more"}, ofAgents((*agents.Service).ReadBlob)},
		{"PUT", "/v1/agent/blobs", 0, attempts, false, "Keep a blob for the job; If-None-Match: * keeps what is there",
			nil, nil, "", []string{"key: of the blob, jobs/JOB/ and more", "durable: later where a sync follows"},
			ofAgents((*agents.Service).WriteBlob)},
		{"DELETE", "/v1/agent/blobs", 0, attempts, false, "Drop one of the job's blobs", nil, nil, "",
			[]string{"key: of the blob, jobs/JOB/ and more"}, ofAgents((*agents.Service).DeleteBlob)},
		{"GET", "/v1/agent/blobs/list", 0, attempts, true, "List the job's blobs, in the order of their keys", nil,
			api.Blobs{}, "", []string{"prefix: of the keys, jobs/JOB/ and more",
				"delimiter: that ends what stands for many keys", "page: next of the page before",
				"limit: at most this many blobs, 1 to 1000 (default: 1000)"},
			ofAgents((*agents.Service).ListBlobs)},
		{"POST", "/v1/agent/blobs/sync", 0, attempts, false, "Make blobs durable that were kept with durable=later",
			api.BlobSync{}, nil, "", nil, ofAgents((*agents.Service).SyncBlobs)},
	}
}

func (s *Server) routes() http.Handler {
	mux, all := http.NewServeMux(), table()
	for _, t := range all {
		mux.HandleFunc(t.Method+" "+t.Path, s.serve(t))
	}
	s.servePages(mux)
	other := auth.Access{Route: "other", Scope: open, Reads: true}
	mux.HandleFunc("/", s.gate.Serve(other, func(w http.ResponseWriter, r *http.Request) {
		for _, t := range all { // the path exists, but not with this method
			if other := r.Clone(r.Context()); other.Method != t.Method {
				other.Method = t.Method
				if _, pattern := mux.Handler(other); pattern != "/" {
					reply.Problem(w, http.StatusMethodNotAllowed, r.Method+" is not done here",
						"GET /v1/openapi.json describes each path", nil)
					return
				}
			}
		}
		reply.Problem(w, http.StatusNotFound, "nothing is served here", "GET /v1/openapi.json describes each path", nil)
	}, func(int, time.Duration) {}))
	// A page of another origin cannot act through a browser. The API takes no cookie, the dashboard's cookie is
	// SameSite, and the handler below also refuses requests that the browser marks as cross-origin.
	cross := http.NewCrossOriginProtection()
	cross.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reply.Guard(w)
		reply.Problem(w, http.StatusForbidden, "a page of another origin asks", "use scrimp, or a program with a token", nil)
	}))
	return cross.Handler(mux)
}

// getBackup sends a consistent backup of one moment while others go on writing.
func (s *Server) getBackup(w http.ResponseWriter, r *http.Request) {
	if err := s.gate.Propose(r, ""); err != nil { // a backup holds everything, so the log records who takes one
		reply.Problem(w, http.StatusServiceUnavailable, "the change was not saved", "try again", err)
		return
	}
	w.Header().Set("Content-Type", "application/gzip")
	all := backup.Whole{Store: s.store, Bills: bills.Folder(s.opts.Dir)}
	if _, err := all.Write(r.Context(), w); err != nil {
		s.opts.Log.Error("backup aborted", "error", err)
		panic(http.ErrAbortHandler) // abort, so that the client cannot take a truncated file for the whole
	}
}

func (s *Server) getHealth(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) }
