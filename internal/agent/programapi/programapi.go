// Package programapi is the HTTP API on the loopback interface by which the program of a job talks to its machine's
// agent: it posts its progress, says that it has saved, and asks whether it should save or stop.
package programapi

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"scrimp/internal/agent/progress"
	"scrimp/internal/wire/api"
)

// Backend is what the program's API asks of the agent.
type Backend interface {
	Progress(api.Step) error                    // the value of the metric that the job is judged by is one too many
	Save(ctx context.Context, step int64) error // the folder is complete; returns once it is captured
	State() State
	Total() int64 // steps of the job, 0 unknown
}

// State is what GET /v1/state answers to the program.
type State struct {
	ShouldCheckpoint bool     `json:"should_checkpoint"`
	ShouldStop       bool     `json:"should_stop"`
	Spent            string   `json:"spent"`
	Currency         string   `json:"currency"`
	BudgetLeft       *string  `json:"budget_left"`        // null: no budget
	TimeToDeadline   *float64 `json:"time_to_deadline_s"` // null: no deadline
}

// TrainerPath is the form of Kubeflow Trainer's address of a job's status.
const TrainerPath = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/scrimp/trainjobs/%s/status"

// maxProgress bounds what a program may post.
const maxProgress = 1 << 20

// API is the HTTP server on the loopback interface that the program talks to.
type API struct {
	URL    string
	Token  string
	server *http.Server
	done   chan struct{}
}

// Serve starts the server. The caller must Close it.
func Serve(b Backend, log *slog.Logger) (*API, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the program: %w", err)
	}
	p := &API{URL: "http://" + l.Addr().String(), Token: strings.ToLower(rand.Text()), done: make(chan struct{})}
	c := &connections{open: map[net.Conn]*connection{}}
	p.server = &http.Server{Handler: programHandler(b, p.Token), ReadHeaderTimeout: headerTime, IdleTimeout: restTime,
		ConnState: c.state, ConnContext: c.context, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
	go func() {
		defer close(p.done)
		if err := p.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error("serve the program's API", "error", err)
		}
	}()
	return p, nil
}

// Close ends the server. Requests that run are cut off: the program is gone.
func (p *API) Close() error {
	err := p.server.Close()
	<-p.done
	return err
}

func programHandler(b Backend, token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/progress", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusNoContent, r, func(body []byte) error {
			list, err := progress.ParseAll(body)
			if err != nil {
				return err
			}
			return tell(b, list...)
		})
	})
	mux.HandleFunc("POST /v1/saved", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusNoContent, r, func(body []byte) error {
			var saved struct {
				Step int64 `json:"step"`
			}
			if len(body) > 0 {
				if err := json.Unmarshal(body, &saved); err != nil {
					return err
				}
			}
			if err := b.Save(r.Context(), saved.Step); err != nil {
				return conflict{err}
			}
			return nil
		})
	})
	mux.HandleFunc("GET /v1/state", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(b.State()) // the program went away
	})
	// Any namespace and name: the token says whose it is. Kubeflow's answer is 200.
	mux.HandleFunc("POST /apis/trainer.kubeflow.org/v1alpha1/namespaces/{namespace}/trainjobs/{job}/status",
		func(w http.ResponseWriter, r *http.Request) {
			reply(w, http.StatusOK, r, func(body []byte) error {
				s, ok, err := progress.ParseTrainer(body, b.Total())
				if err != nil || !ok {
					return err
				}
				return tell(b, s)
			})
		})
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			w.Header().Set("Connection", "close") // whoever else is on this machine gets no more of it
			problemReply(w, http.StatusUnauthorized, "send SCRIMP_AGENT_TOKEN as a bearer token")
			return
		}
		proven(r.Context())
		mux.ServeHTTP(w, r)
	})
}

// tell takes reports in order, and returns why the last was refused that was.
func tell(b Backend, list ...api.Step) (err error) {
	for _, s := range list {
		if why := b.Progress(s); why != nil {
			err = tooMany{why}
		}
	}
	return err
}

// conflict is an error that is the agent's, not the request's; tooMany is one of a program
// that reports too often.
type (
	conflict struct{ error }
	tooMany  struct{ error }
)

func reply(w http.ResponseWriter, status int, r *http.Request, do func(body []byte) error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // a connection has one
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxProgress))
	_ = control.SetReadDeadline(time.Time{}) // a save takes as long as it takes
	if err == nil {
		err = do(body)
	}
	var c conflict
	var many tooMany
	switch {
	case errors.As(err, &c):
		problemReply(w, http.StatusConflict, c.Error())
	case errors.As(err, &many):
		problemReply(w, http.StatusTooManyRequests, many.Error())
	case err != nil:
		problemReply(w, http.StatusBadRequest, err.Error())
	case status == http.StatusOK:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // the program went away
	default:
		w.WriteHeader(status)
	}
}

func problemReply(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	// the program went away
	_ = json.NewEncoder(w).Encode(api.Problem{Title: http.StatusText(status), Status: status, Detail: detail})
}
