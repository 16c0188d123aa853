//go:build !local

package server_test

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"scrimp/internal/wire/api"
)

// inStep is a program on several machines that need each other: each writes its step, and waits for all others. Rank
// 0 saves. The test reads what they wrote at the end.
const inStep = `C=$SCRIMP_CHECKPOINT_DIR; meet=${C%%/market/*}/meet; mkdir -p $meet; us=$meet/$SCRIMP_ATTEMPT
trap 'exit 143' TERM
step=0; [ ! -e $C/step ] || read step < $C/step || exit 1
now=$(date +%s%N) || exit 1
echo $SCRIMP_ATTEMPT $SCRIMP_NODE $SCRIMP_NODES $step $now >> $meet/$SCRIMP_JOB.begun
until [ -e $us.last.$step ]; do
  step=$((step+1))
  if [ $SCRIMP_NODE = 0 ] && [ $step -ge $STEPS ] && [ -z "$UNTIL" -o -e "$meet/$UNTIL" ]; then : > $us.last.$step; fi
  : > $us.$SCRIMP_NODE.$step
  n=0; while [ $n -lt $SCRIMP_NODES ]; do until [ -e $us.$n.$step ]; do sleep 0.1; done; n=$((n+1)); done
  sleep 0.3
  if [ $SCRIMP_NODE = 0 ]; then
    echo $step > $C/.step; mv $C/.step $C/step || exit 1; echo step=$step; echo saved step $step
  fi
done
echo $SCRIMP_ATTEMPT $SCRIMP_NODE $SCRIMP_NODES $step >> $meet/$SCRIMP_JOB.done
`

// gangs are the requests of jobs with several machines, in turn; the last has one machine and a share of it.
var gangs = []string{
	`"nodes":2`,
	`"nodes":"1..3","work":{"time":"20s"},"deadline":"in 30s"`,
	`"nodes":3,"resources":{"capacity":["spot"]}`,
	`"nodes":"1..3"`,
	`"resources":{"cpus":1}`,
}

// gang returns the job file of a program in step.
func gang(name, asks, steps, until string) string {
	return fmt.Sprintf(`{"name":%q,"command":%q,"env":{"STEPS":%q,"UNTIL":%q},"team":"a",%s,`+
		`"checkpoint":{"dir":"checkpoints","interval":"1s"},"signal":"TERM","grace":"2s",`+
		`"progress":{"pattern":"step=(?P<step>\\d+)","saved":"saved step (?P<step>\\d+)"}}`, name, inStep, steps, until, asks)
}

// mostGangs bounds the gangs in progress.
const mostGangs = 3

// gathers submits gangs, and keeps a few of them in progress.
func (c *chaos) gathers(stop <-chan struct{}) {
	var live []string
	for i := 0; ; {
		select {
		case <-stop:
			return
		case <-time.After(200 * time.Millisecond):
		}
		live = slices.DeleteFunc(live, func(id string) bool { j, ok := c.job(id); return ok && over(j.State) })
		if len(live) < mostGangs {
			live = append(live, c.submit(fmt.Sprintf("g-%d", i), gang("g", gangs[i%len(gangs)], "20", "")))
			i++
		}
	}
}

func over(state string) bool {
	return state == "succeeded" || state == "failed" || state == "stopped" || state == "cancelled"
}

// job returns a job; false: no answer.
func (c *chaos) job(id string) (j api.Job, ok bool) {
	status, ok := c.ask("GET", "/v1/jobs/"+id, nil, &j)
	return j, ok && status == http.StatusOK
}

// running returns the gangs that run and have saved.
func (c *chaos) running() (list []api.Job) {
	var live []api.Job
	c.ask("GET", "/v1/jobs?live=1&state=running", nil, &live)
	for _, j := range live {
		if j.Name == "g" && j.State == "running" && j.SavedStep > 0 {
			list = append(list, j)
		}
	}
	return list
}

// kills kills everything on a machine of a gang without notice, as a power failure does.
func (c *chaos) kills(stop <-chan struct{}) {
	rng := rand.New(rand.NewPCG(1, 2))
	for {
		select {
		case <-stop:
			return
		case <-time.After(3 * time.Second):
		}
		list, seen := c.running(), time.Now()
		if len(list) == 0 {
			continue
		}
		j := list[rng.IntN(len(list))]
		machine := j.Machine
		if len(j.Nodes) > 0 {
			machine = j.Nodes[rng.IntN(len(j.Nodes))].Machine
		}
		pids := processes(machine)
		if len(pids) == 0 {
			continue // it has ended meanwhile
		}
		// Stop all before killing the first: an agent that saw its program die would report a failure.
		for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGKILL} {
			for _, pid := range pids {
				_ = syscall.Kill(pid, signal)
			}
		}
		c.mu.Lock()
		c.deaths++
		c.saved[j.ID] = append(c.saved[j.ID], savedStep{seen, j.SavedStep})
		c.mu.Unlock()
	}
}

// savedStep is a checkpoint that the server reported.
type savedStep struct {
	at   time.Time
	step int64
}

// processes returns the processes of a machine, identified by its name, oldest first.
func processes(machine string) (pids []int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		env, err2 := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if err == nil && err2 == nil && machine != "" &&
			slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool {
				return string(v) == "SCRIMP_INSTANCE_ID="+machine || string(v) == "SCRIMP_INSTANCE="+machine
			}) {
			pids = append(pids, pid)
		}
	}
	begun := map[int]int64{}
	for _, pid := range pids {
		begun[pid] = began(pid)
	}
	slices.SortStableFunc(pids, func(a, b int) int { return cmp.Compare(begun[a], begun[b]) })
	return pids
}

// began returns the start of a process in clock ticks since boot, because process numbers wrap around. It is field
// 22 of stat; field 2 may contain spaces in its parentheses.
func began(pid int) (ticks int64) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	words := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(words) < 20 {
		return math.MaxInt64 // it has ended
	}
	ticks, _ = strconv.ParseInt(words[19], 10, 64)
	return ticks
}

// sweep kills what a failed test has left: its servers, its market and all machines.
func (c *chaos) sweep() {
	c.over.Store(true)
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		command, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		env, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "environ"))
		if all := string(command) + string(env); err == nil && pid != os.Getpid() && strings.Contains(all, c.dir+"/") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	for _, s := range c.servers {
		if pid := int(s.pid.Load()); pid > 0 && s.runs.Load() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	c.owned.Wait()
}

// pauses pauses and resumes a running job, and checks that acknowledged changes hold.
func (c *chaos) pauses(stop <-chan struct{}) {
	for n := 0; ; n++ {
		select {
		case <-stop:
			return
		case <-time.After(2 * time.Second):
		}
		list := c.running()
		if len(list) == 0 {
			continue
		}
		id := list[n%len(list)].ID
		if c.insist("POST", "/v1/jobs/"+id+"/pause", api.Pause{}, nil) != http.StatusOK {
			continue // it had ended
		}
		if state := c.until(id, func(j api.Job) bool { return j.State == "paused" || over(j.State) }); state != "paused" {
			continue
		}
		status := c.insist("POST", "/v1/jobs/"+id+"/resume", api.Resume{}, nil)
		state := c.until(id, func(api.Job) bool { return true })
		if status != http.StatusOK && status != http.StatusConflict || state == "paused" { // 409: already resumed
			c.t.Errorf("job %s was resumed, which was answered with %d, and is %s", id, status, state)
		}
		c.mu.Lock()
		c.rests++
		c.mu.Unlock()
	}
}

// until waits until a condition holds for a job, and returns the job's state.
func (c *chaos) until(id string, so func(api.Job) bool) string {
	for began := time.Now(); ; rest(50 * time.Millisecond) {
		j, ok := c.job(id)
		if ok && so(j) {
			return j.State
		}
		if time.Since(began) > time.Minute {
			c.t.Errorf("after a minute job %s is %s (%s)", id, j.State, j.Why)
			return j.State
		}
	}
}

// words returns the lines of a file that programs in step wrote.
func (c *chaos) words(id, what string) (lines [][]string) {
	text, _ := os.ReadFile(filepath.Join(c.dir, "meet", id+"."+what))
	for line := range strings.Lines(string(text)) {
		lines = append(lines, strings.Fields(line))
	}
	return lines
}

// allSucceeded checks that every gang succeeded, and reports those that did not.
func (c *chaos) allSucceeded() {
	for key, id := range c.known {
		if !strings.HasPrefix(key, "g-") && !strings.HasPrefix(key, "k-") {
			continue
		}
		if j, ok := c.job(id); !ok || j.State != "succeeded" {
			out, err := c.cli("explain", id)
			c.t.Errorf("%s, job %s, is %s (%s), %v:\n%s", key, id, j.State, j.Why, err, out)
			logs, err := c.cli("logs", id, "--tail", "20")
			c.t.Logf("its output: %v\n%s", err, logs)
		}
	}
}

// checkGangs checks the records of the gangs' programs: all ranks of an attempt started from one step, no
// acknowledged checkpoint was lost, and one attempt completed on all its machines.
func (c *chaos) checkGangs() {
	sizes, resumed := map[string]int{}, 0
	for key, id := range c.known {
		if !strings.HasPrefix(key, "g-") && !strings.HasPrefix(key, "k-") {
			continue
		}
		first := map[string]string{} // by attempt
		for _, w := range c.words(id, "begun") {
			if len(w) != 5 {
				c.t.Errorf("a rank of %s said %q when it began, want five words", id, w)
				continue
			}
			attempt, node, step := w[0], w[1], w[3]
			if other, known := first[attempt]; known && other != step {
				c.t.Errorf("rank %s of %s began from step %s, another from %s", node, attempt, step, other)
			}
			first[attempt] = step
			c.checkFirst(id, w)
			if step != "0" {
				resumed++
			}
		}
		done := c.words(id, "done")
		if len(done) == 0 {
			c.t.Errorf("no rank of %s came to its end", id)
			continue
		}
		last := done[len(done)-1]
		ended := slices.DeleteFunc(done, func(w []string) bool { return w[0] != last[0] })
		if want, _ := strconv.Atoi(last[2]); len(ended) != want {
			c.t.Errorf("%d ranks of %s came to their end, want %d", len(ended), last[0], want)
		}
		sizes[last[2]]++
	}
	c.t.Logf("gangs that came to their end, by machines: %v; %d ranks went on from a checkpoint; %d machines of gangs "+
		"were killed, %d jobs paused", sizes, resumed, c.deaths, c.rests)
	if sizes["2"] == 0 || sizes["3"] == 0 || resumed == 0 || c.deaths == 0 || c.rests == 0 {
		c.t.Error("the test shows little")
	}
}

// checkFirst checks the step from which a rank started against the checkpoints that the server had reported by then.
func (c *chaos) checkFirst(id string, w []string) {
	first, err := strconv.ParseInt(w[3], 10, 64)
	chaosMust(c.t, err)
	ns, err := strconv.ParseInt(w[4], 10, 64)
	chaosMust(c.t, err)
	for _, s := range c.saved[id] {
		if time.Unix(0, ns).After(s.at) && first < s.step {
			c.t.Errorf("rank %s of %s began from step %d, and step %d had been saved", w[1], w[0], first, s.step)
		}
	}
}
