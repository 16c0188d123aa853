package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"scrimp/internal/agent/programapi"
)

// programs maps names to the programs that the tests run.
var programs = map[string]func() int{
	"print":    playPrint,
	"train":    playTrain,
	"deaf":     playDeaf,
	"helper":   playHelper,
	"hugging":  playHugging,
	"env":      playEnv,
	"progress": playProgress,
	"burn":     playBurn,
	"agent":    playAgent,
	"epochs":   playEpochs,
	"knock":    playKnock,
}

// playPrint prints TEST_LINES lines on both streams and exits with TEST_EXIT.
func playPrint() int {
	n, _ := strconv.Atoi(os.Getenv("TEST_LINES"))
	for i := range n {
		out := os.Stdout
		if i%3 == 0 {
			out = os.Stderr
		}
		_, _ = fmt.Fprintf(out, "line %d %s\n", i, strings.Repeat("x", i%97))
	}
	_, _ = fmt.Fprint(os.Stdout, os.Getenv("TEST_TAIL"))
	exit, _ := strconv.Atoi(os.Getenv("TEST_EXIT"))
	return exit
}

// checkpointFile is the file with the state of playTrain.
func checkpointFile(dir string) string { return filepath.Join(dir, "state") }

func readStep(dir string) int {
	b, _ := os.ReadFile(checkpointFile(dir))
	n, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	return n
}

// playTrain is an unmodified trainer. It resumes from its checkpoint, saves every TEST_EVERY steps
// by writing aside and renaming, and on SIGTERM waits TEST_SAVE before it saves and exits. It exits
// by itself after TEST_STEPS steps.
func playTrain() int {
	dir := os.Getenv("SCRIMP_CHECKPOINT_DIR")
	steps, _ := strconv.Atoi(os.Getenv("TEST_STEPS"))
	every, _ := strconv.Atoi(os.Getenv("TEST_EVERY"))
	wait, _ := time.ParseDuration(os.Getenv("TEST_SAVE"))
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM, syscall.SIGUSR1)
	save := func(step int) {
		if err := os.WriteFile(checkpointFile(dir)+".tmp", []byte(strconv.Itoa(step)), 0o600); err != nil {
			panic(err)
		}
		if err := os.Rename(checkpointFile(dir)+".tmp", checkpointFile(dir)); err != nil {
			panic(err)
		}
	}
	step := readStep(dir)
	fmt.Printf("begin at %d restored %s\n", step, os.Getenv("SCRIMP_RESTORED"))
	for steps == 0 || step < steps {
		select {
		case s := <-term:
			fmt.Printf("signal %v at %d\n", s, step)
			<-time.After(wait)
			save(step)
			fmt.Printf("saved %d\n", step)
			return 0
		case <-time.After(2 * time.Millisecond):
		}
		step++
		fmt.Printf("step=%d loss=%g\n", step, 10/float64(step))
		if every > 0 && step%every == 0 {
			save(step)
			fmt.Printf("saved %d\n", step)
		}
	}
	save(step)
	return 0
}

// playDeaf ignores every signal, as does its child.
func playDeaf() int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1)
	dir := os.Getenv("SCRIMP_CHECKPOINT_DIR")
	_ = os.WriteFile(checkpointFile(dir), []byte("7"), 0o600)
	fmt.Println("deaf")
	for i := 0; ; i++ { // it is always in the middle of a save
		_ = os.WriteFile(checkpointFile(dir), []byte(strconv.Itoa(i)), 0o600)
		<-time.After(time.Millisecond)
	}
}

// call sends a request to the program's API.
func call(method, path string, body any) (int, []byte, error) {
	return callAt(os.Getenv("SCRIMP_AGENT_URL"), method, path, body)
}

// callAt sends a request with the program's token to a server.
func callAt(server, method, path string, body any) (int, []byte, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequest(method, server+path, bytes.NewReader(b))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+os.Getenv("SCRIMP_AGENT_TOKEN"))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, answer, err
}

// playHelper is a program that uses the helper library: it saves on request, in place and in
// several files, and stops on request.
func playHelper() int {
	dir := os.Getenv("SCRIMP_CHECKPOINT_DIR")
	for step := 1; ; step++ {
		if code, _, err := call("POST", "/v1/progress", map[string]any{"step": step, "total": 6000, "epoch": 1.5, "metrics": map[string]any{"loss": 2.31}}); err != nil || code != 204 {
			fmt.Println("progress", code, err)
			return 3
		}
		_, b, err := call("GET", "/v1/state", nil)
		var s programapi.State
		if err != nil || json.Unmarshal(b, &s) != nil {
			fmt.Println("state", err)
			return 4
		}
		if s.ShouldCheckpoint {
			for _, name := range []string{"a", "b"} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(strconv.Itoa(step)), 0o600); err != nil {
					return 5
				}
			}
			code, _, err := call("POST", "/v1/saved", map[string]any{"step": step})
			if err != nil || code != 204 {
				fmt.Println("saved", code, err)
				return 6
			}
			if s.ShouldStop {
				return 0
			}
			// The agent has its copy, which does not contain later writes.
			_ = os.WriteFile(filepath.Join(dir, "a"), []byte("torn"), 0o600)
		}
		if s.ShouldStop {
			return 0
		}
		<-time.After(5 * time.Millisecond)
	}
}

// playEpochs posts a list of five epochs, and then its loss until the agent answers that this is too often.
func playEpochs() int {
	epochs := []map[string]any{}
	for n := 1; n <= 5; n++ {
		epochs = append(epochs, map[string]any{"step": n, "epoch": n, "loss": 1 / float64(int(1)<<n)})
	}
	if code, b, err := call("POST", "/v1/progress", epochs); err != nil || code != 204 {
		fmt.Println("epochs", code, string(b), err)
		return 3
	}
	for n := 6; n < 10000; n++ {
		code, b, err := call("POST", "/v1/progress", map[string]any{"step": n, "loss": 1})
		if err != nil || code != 204 && code != 429 {
			return 4
		}
		if code == 429 {
			fmt.Println(string(b))
			<-time.After(time.Hour) // the agent ends it
		}
	}
	return 5
}

// playKnock prints whether it has a token of the agent, and the server's answer to its own token.
func playKnock() int {
	env := strings.Join(os.Environ(), "\n")
	fmt.Println(strings.Contains(env, "bootstrap-token") || strings.Contains(env, "attempt-token"))
	for _, path := range []string{"/v1/agent/report", "/v1/agent/pull"} {
		code, _, err := callAt(os.Getenv("TEST_SERVER"), "POST", path, map[string]any{"attempt": "job-1.1"})
		if err != nil {
			fmt.Println(err)
		}
		fmt.Println(code)
	}
	return 0
}

// playHugging posts like Hugging Face's callback.
func playHugging() int {
	token, err := os.ReadFile(os.Getenv("KUBEFLOW_TRAINER_SERVER_TOKEN"))
	if err != nil {
		return 2
	}
	post := func(body string) int {
		req, _ := http.NewRequest("POST", os.Getenv("KUBEFLOW_TRAINER_SERVER_URL"), strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0
		}
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	if post(`{"trainerStatus": {"lastUpdatedTime": "2026-01-01T00:00:00+00:00", "progressPercentage": 25, "estimatedRemainingSeconds": 90, "metrics": [{"name": "loss", "value": "1.5"}, {"name": "grad_norm", "value": "nan"}, {"name": "current_step", "value": "50"}, {"name": "total_steps", "value": "200"}, {"name": "current_epoch", "value": "0.75"}]}}`) != 200 {
		return 3
	}
	return 0
}

func playEnv() int {
	for _, kv := range os.Environ() {
		fmt.Println(kv)
	}
	wd, _ := os.Getwd()
	fmt.Println("cwd=" + wd)
	b, _ := os.ReadFile("data/input.txt")
	fmt.Println("input=" + string(b))
	return 0
}

func playProgress() int {
	f, err := os.OpenFile(os.Getenv("SCRIMP_PROGRESS_FILE"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 2
	}
	_, _ = f.WriteString("{\"step\":11,\"loss\":2.5}\n{\"step\": 12, \"loss\": NaN, \"acc\": 0.5, \"name\": \"NaN is a word\"}\nnot json\n")
	return 0
}
