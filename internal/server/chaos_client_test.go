//go:build !local

package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"time"

	"scrimp/internal/store/backup"
	"scrimp/internal/wire/api"
)

// ask sends a request to the leader, and reports whether it answered; a leader that is stopping does not.
func (c *chaos) ask(method, path string, in, out any) (status int, answered bool) {
	body, err := json.Marshal(in)
	chaosMust(c.t, err)
	c.mu.Lock()
	servers := slices.Clone(c.servers)
	c.mu.Unlock()
	for _, s := range servers {
		ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
		r, err := http.NewRequestWithContext(ctx, method, "http://"+s.address+path, bytes.NewReader(body))
		chaosMust(c.t, err)
		r.Header.Set("Authorization", "Bearer "+c.token)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			cancel()
			continue
		}
		text, err := io.ReadAll(a.Body)
		_ = a.Body.Close()
		cancel()
		if err != nil || a.StatusCode >= 500 {
			continue
		}
		if a.StatusCode == http.StatusOK && out != nil && json.Unmarshal(text, out) != nil {
			continue // cut off
		}
		return a.StatusCode, true
	}
	c.mu.Lock()
	c.unanswered++
	c.mu.Unlock()
	return 0, false
}

// insist repeats a request until it is answered.
func (c *chaos) insist(method, path string, in, out any) int {
	for began := time.Now(); ; rest(50 * time.Millisecond) {
		if status, ok := c.ask(method, path, in, out); ok {
			return status
		}
		if time.Since(began) > 2*time.Minute {
			c.t.Errorf("%s %s has no answer", method, path)
			return 0
		}
	}
}

func (c *chaos) cli(args ...string) ([]byte, error) {
	// it ends by itself
	return exec.Command(c.exe, append([]string{"--data", c.dir}, args...)...).CombinedOutput()
}

// prepare creates the teams, a user, and a limit.
func (c *chaos) prepare() {
	for _, args := range [][]string{{"teams", "set", "a"}, {"teams", "set", "b"},
		{"users", "set", "ann", "--grant", "admin"}, {"budgets", "set", "--team", "b", "--total", "--dollars", "2"}} {
		if out, err := c.cli(args...); err != nil {
			c.t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	var made api.MadeToken
	out, err := c.cli("tokens", "new", "ann", "--json")
	chaosMust(c.t, err)
	chaosMust(c.t, json.Unmarshal(out, &made))
	c.token = made.Text
}

// submit submits a job with the same key until it is answered.
func (c *chaos) submit(key, spec string) (id string) {
	var j api.Job
	status := c.insist("POST", "/v1/jobs", json.RawMessage(fmt.Sprintf(`{"key":%q,"spec":%s}`, key, spec)), &j)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch status {
	case http.StatusOK:
		c.known[key] = j.ID
		return j.ID
	case http.StatusPaymentRequired:
		c.refused++
	default:
		c.t.Errorf("a job is answered with %d", status)
	}
	return ""
}

// mostWait bounds the waiting jobs of one client: the core considers waiting jobs, 64 per event, even if nothing
// fits them, and thousands would delay the others.
const mostWait = 500

// submits submits jobs for machines that nobody sells, and ends some.
func (c *chaos) submits(n int, stop <-chan struct{}) {
	var wait []string
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(20 * time.Millisecond):
		}
		key := fmt.Sprintf("q-%d-%d", n, i)
		// many jobs want one name
		id := c.submit(key, fmt.Sprintf(`{"name":"q-%d","command":"true","team":"a","resources":{"cpus":"4096+"}}`, n))
		if i%5 != 0 {
			if wait = append(wait, id); len(wait) <= mostWait {
				continue
			}
			id, wait = wait[0], wait[1:]
		}
		if id != "" && c.insist("POST", "/v1/jobs/"+id+"/end", api.End{}, nil) == http.StatusOK {
			c.mu.Lock()
			c.ended[id] = true
			c.mu.Unlock()
		}
	}
}

// works submits jobs that machines run, as many as the budget admits.
func (c *chaos) works(stop <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-time.After(400 * time.Millisecond):
		}
		c.submit(fmt.Sprintf("w-%d", i), `{"name":"w","command":"sleep 1; echo done","resources":{"cpus":1},"team":"b","budget":{"dollars":"0.45"}}`)
	}
}

// reads reads the budget repeatedly: it must hold at every moment.
func (c *chaos) reads(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		case <-time.After(100 * time.Millisecond):
		}
		var v api.Budgets
		if status, ok := c.ask("GET", "/v1/budgets", nil, &v); !ok || status != http.StatusOK || len(v.Limits) == 0 {
			continue
		}
		if l := v.Limits[0]; l.Use.Spent.Add(l.Use.Held).Cmp(*l.Limit.Dollars) > 0 {
			c.t.Errorf("of %v, %v is spent and %v held", *l.Limit.Dollars, l.Use.Spent, l.Use.Held)
		}
	}
}

// backUp takes a backup while clients go on, and returns its hash.
func (c *chaos) backUp(file string) (sum backup.Sum) {
	for began := time.Now(); ; rest(200 * time.Millisecond) {
		_ = os.Remove(file)
		out, err := c.cli("backup", file, "--json")
		if err == nil && json.Unmarshal(out, &sum) == nil && sum.End > 0 {
			return sum
		}
		if time.Since(began) > time.Minute {
			c.t.Fatalf("no backup: %v\n%s", err, out)
		}
	}
}
