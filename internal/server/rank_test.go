package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	gocloud "gocloud.dev/blob"

	"scrimp/internal/agent/wire"
	"scrimp/internal/content/checkpoint"
	"scrimp/internal/content/checkpoint/folder"
	"scrimp/internal/content/checkpoint/format"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/confined"
	"scrimp/internal/lib/money"
	"scrimp/internal/server/auth"
	"scrimp/internal/server/workdir"
	"scrimp/internal/store/logfile"
	"scrimp/internal/test/must"
	"scrimp/internal/wire/api"
)

// rankToken returns the token of a rank of the attempt.
func (w *world) rankToken(attempt string, node int) string {
	return w.gate.Tickets.For(auth.AttemptTicket, api.Rank(attempt, node))
}

// The server refuses reports and output that a rank sends for another one.
func TestRank_CannotReportForAnotherRank(t *testing.T) {
	t.Parallel()
	w, attempt := rentedWorld(t, nil)
	first, third := w.rankToken(attempt, 0), w.rankToken(attempt, 2)
	for _, c := range []struct {
		token, method, path string
		body                any
		want                int
	}{
		{first, "POST", "/v1/agent/report", api.Report{Attempt: attempt, Now: time.Now()}, 200},
		{third, "POST", "/v1/agent/report", api.Report{Attempt: attempt, Node: 2, Now: time.Now()}, 200},
		{first, "POST", "/v1/agent/report", api.Report{Attempt: attempt, Node: 2}, http.StatusForbidden},
		{third, "POST", "/v1/agent/report", api.Report{Attempt: attempt}, http.StatusForbidden},
		{third, "POST", "/v1/agent/report", api.Report{Attempt: attempt, Node: 1}, http.StatusForbidden},
		{third, "POST", "/v1/agent/report", api.Report{Attempt: attempt, Node: -2}, http.StatusForbidden},
		{third, "POST", "/v1/agent/logs?node=2&offset=0", "third", 200},
		{first, "POST", "/v1/agent/logs?offset=0", "the first", 200},
		{third, "POST", "/v1/agent/logs?offset=0", "x", http.StatusForbidden},
		{third, "POST", "/v1/agent/logs?node=02&offset=0", "x", http.StatusForbidden},
		{first, "POST", "/v1/agent/logs?node=2&offset=0", "x", http.StatusForbidden},
		{third, "GET", "/v1/agent/logs", nil, http.StatusForbidden},
		{strings.Replace(third, "/2.", "/1.", 1), "GET", "/v1/agent/logs?node=1", nil, http.StatusUnauthorized},
		{strings.Replace(third, "/2.", ".", 1), "GET", "/v1/agent/logs", nil, http.StatusUnauthorized},
		{w.gate.Tickets.For(auth.AttemptTicket, attempt+"/0"), "GET", "/v1/agent/logs", nil, http.StatusUnauthorized},
		{w.rankToken("other.1", 2), "GET", "/v1/agent/logs?node=2", nil, http.StatusGone},
	} {
		rec, p := w.ask(c.method, c.path, c.token, c.body)
		if rec.Code != c.want || c.want != 200 && p.Fix == "" {
			t.Errorf("%s %s %v: %d %+v, want %d", c.method, c.path, c.body, rec.Code, p, c.want)
		}
	}
	for node, want := range map[int]string{0: "the first", 1: "", 2: "third"} {
		if b, err := w.store.ReadLog(t.Context(), logfile.Name(attempt, node), 0, 100); err != nil || string(b) != want {
			t.Errorf("the output of rank %d is %q, %v; want %q", node, b, err, want)
		}
	}
	rec, _ := w.ask("GET", "/v1/agent/logs?node=2", third, nil)
	var end api.LogEnd
	if err := json.Unmarshal(rec.Body.Bytes(), &end); err != nil || end.Offset != int64(len("third")) {
		t.Errorf("of rank 2 %d bytes are kept, %v", end.Offset, err)
	}
	if now, ok := w.control.LatestOf(attempt, 2); !ok || now.Heard.IsZero() {
		t.Error("rank 2 was not heard")
	}
}

// The output of one rank counts towards its own limit only.
func TestRank_HasItsOwnOutputLimit(t *testing.T) {
	t.Parallel()
	w, attempt := rentedWorld(t, func(o *Options) { o.LogLimit = 1 << 20 })
	chunk := strings.Repeat("x", 2<<20)
	for node, path := range map[int]string{0: "/v1/agent/logs?offset=0", 3: "/v1/agent/logs?node=3&offset=0"} {
		if rec, p := w.ask("POST", path, w.rankToken(attempt, node), chunk); rec.Code != 200 {
			t.Fatalf("rank %d: %+v", node, p)
		}
		var o api.Orders
		rec, p := w.ask("POST", "/v1/agent/report", w.rankToken(attempt, node), api.Report{Attempt: attempt, Node: node, Now: time.Now(), LogEnd: 1 << 40})
		if err := json.Unmarshal(rec.Body.Bytes(), &o); err != nil || o.LogEnd != 1<<40 {
			t.Errorf("rank %d has printed too much, and is asked for more: %+v %+v", node, o, p)
		}
	}
	rec, p := w.ask("POST", "/v1/agent/logs?node=1&offset=0", w.rankToken(attempt, 1), "few")
	var end api.LogEnd
	if err := json.Unmarshal(rec.Body.Bytes(), &end); err != nil || end.Offset != 3 {
		t.Errorf("rank 1 has printed little: %+v %+v", end, p)
	}
}

// A request for the output of a missing node is refused with the number of nodes.
func TestOutput_OfAMissingNodeNamesTheNumberOfNodes(t *testing.T) {
	t.Parallel()
	w, attempt := rentedWorld(t, nil)
	if rec, p := w.ask("POST", "/v1/agent/logs?offset=0", w.rankToken(attempt, 0), "one\ntwo"); rec.Code != 200 {
		t.Fatalf("%+v", p)
	}
	job, _, _ := strings.Cut(attempt, ".")
	for query, want := range map[string]string{
		"": "one\ntwo", "?node=0": "one\ntwo", "?node=all": "[0] one\n[0] two\n", "?node=0&offset=4": "two",
	} {
		if rec, p := w.ask("GET", "/v1/jobs/"+job+"/log"+query, auth.OwnerName, nil); rec.Code != 200 || rec.Body.String() != want {
			t.Errorf("%s: %d %q %+v, want %q", query, rec.Code, rec.Body, p, want)
		}
	}
	for query, status := range map[string]int{"?node=1": 404, "?node=x": 404, "?node=-1": 404, "?node=all&offset=3": 400} {
		rec, p := w.ask("GET", "/v1/jobs/"+job+"/log"+query, auth.OwnerName, nil)
		if rec.Code != status || p.Fix == "" || status == 404 && !strings.Contains(p.Title, "one machine") {
			t.Errorf("%s: %d %+v", query, rec.Code, p)
		}
	}
}

// rentedFor returns a world with a job of this file, and its attempt.
func rentedFor(t *testing.T, spec string) (*world, string) {
	w := newWorldOf(t, &rents{}, nil)
	w.event(core.JobSubmitted{Job: "g", Terms: core.Terms{Name: "g", Currency: money.USD, Nodes: 1, Priority: 1}, Spec: []byte(spec)}, 0)
	attempt := w.newest("g", "")
	return w, attempt
}

// All machines of a gang may read the job's blobs. Ranks above 0 may write their outputs and, if each rank saves a
// part of a checkpoint, their parts; nothing of rank 0 or of each other.
func TestRank_WritesItsOwnBlobsOnly(t *testing.T) {
	t.Parallel()
	const part, other = "000001-000001-000002-000000000007", "000001-000001-000001-000000000007"
	for ranks, spec := range map[string]string{
		"first": `{"name":"g","command":"true","nodes":3,"checkpoint":{"dir":"c"},"outputs":["o"]}`,
		"all":   `{"name":"g","command":"true","nodes":3,"checkpoint":{"dir":"c","ranks":"all"},"outputs":["o"]}`,
	} {
		t.Run(ranks, func(t *testing.T) {
			w, attempt := rentedFor(t, spec)
			second := api.Rank(attempt, 2)
			put := func(rank, key string) int { return w.blob("PUT", keyOf(key), rank, "x").Code }
			for key, want := range map[string]bool{
				"jobs/g/outputs/g-2/1": true, "jobs/g/objects/kept/bb": true, "jobs/g/outputs/g/1": false, "jobs/g/outputs/g-1/1": false,
				"jobs/g/manifests/m": false, "jobs/g/claims/c": false, "jobs/g/fences/f": false, "jobs/g/starts/s": false, "jobs/x/outputs/g-2/1": false,
				"jobs/g/objects/" + part + "/aa": ranks == "all", "jobs/g/shares/" + part: ranks == "all",
				"jobs/g/objects/" + other + "/aa": false, "jobs/g/shares/" + other: false,
			} {
				if code := put(second, key); (code < 300) != want || !want && code != http.StatusForbidden {
					t.Errorf("rank 2 writes %s: %d, want that it may: %v", key, code, want)
				}
				if code := w.blob("DELETE", keyOf(key), second, "").Code; code < 300 != want {
					t.Errorf("rank 2 deletes %s: %d, want that it may: %v", key, code, want)
				}
			}
			if code := put(attempt, "jobs/g/manifests/m"); code >= 300 {
				t.Fatalf("rank 0 writes a manifest: %d", code)
			}
			if rec := w.blob("GET", keyOf("jobs/g/manifests/m"), second, ""); rec.Code != 200 || rec.Body.String() != "x" {
				t.Errorf("rank 2 reads a manifest: %d %s", rec.Code, rec.Body)
			}
		})
	}
}

// The store of checkpoints and the server agree on what a rank may write: a gang saves a checkpoint of all ranks and
// its outputs through the server, each rank with its own token.
func TestGang_SavesAllRanksThroughTheServer(t *testing.T) {
	t.Parallel()
	const nodes = 3
	w, attempt := rentedFor(t, `{"name":"g","command":"true","nodes":3,"checkpoint":{"dir":"c","ranks":"all"},"outputs":["o"]}`)
	site := httptest.NewServer(w.h)
	defer site.Close()
	var stores []*checkpoint.Store
	var dirs []string
	for node := range nodes {
		a, err := wire.Dial(site.URL, func() string { return w.rankToken(attempt, node) })
		must.Do(t, err)
		t.Cleanup(a.Close)
		stores = append(stores, checkpoint.Open(gocloud.NewBucket(a.Store()), "jobs/g/").Of(node, nodes))
		dirs = append(dirs, t.TempDir())
		if err := os.WriteFile(filepath.Join(dirs[node], "state"), fmt.Append(nil, "rank ", node), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	leader, err := stores[0].Claim(t.Context(), 1, attempt)
	must.Do(t, err)
	var ranks sync.WaitGroup
	for node := 1; node < nodes; node++ {
		ranks.Go(func() {
			f, err := stores[node].Follow(t.Context(), 1, attempt)
			if err != nil {
				t.Error(err)
				return
			}
			c, err := folder.Take(t.Context(), dirs[node])
			if err == nil {
				_, err = f.Share(t.Context(), c, format.Meta{Step: 7})
			}
			if err == nil {
				_, _, err = stores[node].Keep(t.Context(), confined.Folder{Path: dirs[node]}, []string{"."}, api.OutputsName("g", node))
			}
			if err != nil {
				t.Errorf("rank %d: %v", node, err)
			}
		})
	}
	c, err := folder.Take(t.Context(), dirs[0])
	must.Do(t, err)
	m, _, err := leader.PublishRanks(t.Context(), c, format.Meta{Job: "g", Step: 7})
	ranks.Wait()
	if err != nil || m.Ranks != nodes || len(m.Files) != 2*nodes { // a folder and a file each
		t.Errorf("published is %+v, %v", m, err)
	}
	rec, p := w.ask("GET", "/v1/jobs/g/kept", auth.OwnerName, nil)
	var list []api.Outputs
	if err := json.Unmarshal(rec.Body.Bytes(), &list); err != nil {
		t.Fatal(err, p)
	}
	if len(list) != 2 || list[0].Node != 1 || list[1].Node != 2 || list[1].Files != 1 || list[1].Bytes != 6 || list[1].Kept.IsZero() {
		t.Errorf("kept are %+v: ranks 1 and 2 have kept a file each", list)
	}
	for node, want := range map[string]int{"": 400, "0": 404, "1": 200, "2": 200, "3": 404, "-1": 404, "x": 404} {
		rec, _ := w.ask("GET", "/v1/jobs/g/outputs?node="+node, auth.OwnerName, nil)
		if rec.Code != want {
			t.Errorf("outputs of node %q: %d, want %d", node, rec.Code, want)
		}
		if dir := t.TempDir(); rec.Code == 200 {
			err := workdir.Unpack(rec.Body, dir)
			if text, _ := os.ReadFile(filepath.Join(dir, "state")); err != nil || string(text) != "rank "+node {
				t.Errorf("outputs of node %s: %q, %v", node, text, err)
			}
		}
	}
}

// A single machine gets nothing about a gang.
func TestAssignment_OfASingleMachineHasNoGang(t *testing.T) {
	t.Parallel()
	w, attempt := rentedWorld(t, nil)
	as := w.take(attempt)
	if as.Node != 0 || as.Nodes != 1 || as.MasterPort != 0 || len(as.Addresses) > 0 || as.AttemptToken != w.rankToken(attempt, 0) {
		t.Errorf("a machine alone is told %+v", as)
	}
}
