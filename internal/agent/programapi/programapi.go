// Package programapi is the HTTP API on the loopback interface through which a job's program talks
// to the machine's agent: it posts progress, announces saves, and asks whether it should save or
// stop.
package programapi

import (
	"cmp"
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

// Backend is the agent behind the program's API.
type Backend interface {
	Progress(api.Step) error                    // fails if the objective metric exceeds its rate
	Save(ctx context.Context, step int64) error // captures the complete folder before it returns
	State() State
	// Search passes a call about a search to the server, and returns its status and answer.
	Search(ctx context.Context, body []byte) (status int, answer []byte, err error)
	Total() int64 // steps of the job; 0: unknown
}

// State is the response to GET /v1/state.
type State struct {
	ShouldCheckpoint bool     `json:"should_checkpoint"`
	ShouldStop       bool     `json:"should_stop"`
	Spent            string   `json:"spent"`
	Currency         string   `json:"currency"`
	BudgetLeft       *string  `json:"budget_left"`        // null: no budget
	TimeToDeadline   *float64 `json:"time_to_deadline_s"` // null: no deadline
}

// TrainerPath is the path format of a job's status in Kubeflow Trainer's API.
const TrainerPath = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/scrimp/trainjobs/%s/status"

// maxProgress is the largest body, in bytes, that a program may post.
const maxProgress = 1 << 20

// API is the HTTP server on the loopback interface for the program.
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

// Close stops the server and cuts off running requests, since the program has ended.
func (p *API) Close() error {
	err := p.server.Close()
	<-p.done
	return err
}

func programHandler(b Backend, token string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/progress", func(w http.ResponseWriter, r *http.Request) {
		reply(w, http.StatusNoContent, r, func(body []byte) error {
			list, wrong := progress.ParseAll(body)
			return cmp.Or(tell(b, list...), wrong)
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
	mux.HandleFunc("POST /v1/search", func(w http.ResponseWriter, r *http.Request) { passSearch(b, w, r) })
	mux.HandleFunc("GET /v1/state", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(b.State()) // the program may have closed the connection
	})
	// Any namespace and name will do, because the token identifies the job. Kubeflow answers 200.
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
			w.Header().Set("Connection", "close") // a stranger on this machine gets no more requests on it
			problemReply(w, http.StatusUnauthorized, "send SCRIMP_AGENT_TOKEN as a bearer token")
			return
		}
		proven(r.Context())
		mux.ServeHTTP(w, r)
	})
}

// maxCall is the largest body, in bytes, of a call about a search.
const maxCall = 1 << 20

// passSearch passes a call about a search to the server, and the server's answer, a refusal too, unchanged to the
// program.
func passSearch(b Backend, w http.ResponseWriter, r *http.Request) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // every connection supports deadlines
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCall))
	_ = control.SetReadDeadline(time.Time{})
	if err != nil {
		refuseBody(w, err)
		return
	}
	status, answer, err := b.Search(r.Context(), body)
	if err != nil {
		problemReply(w, http.StatusBadGateway, err.Error())
		return
	}
	kind := "application/json"
	if status >= http.StatusBadRequest {
		kind = "application/problem+json"
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(answer) // the program may have closed the connection
}

// tell passes reports to b in order, and returns the reason for the last refusal.
func tell(b Backend, list ...api.Step) (err error) {
	for _, s := range list {
		if why := b.Progress(s); why != nil {
			err = tooMany{why}
		}
	}
	return err
}

// conflict is an error of the agent, not of the request; tooMany reports that the program posts too often.
type (
	conflict struct{ error }
	tooMany  struct{ error }
)

func reply(w http.ResponseWriter, status int, r *http.Request, do func(body []byte) error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime)) // every connection supports deadlines
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxProgress))
	_ = control.SetReadDeadline(time.Time{}) // a save has no time limit
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
		refuseBody(w, err)
	case status == http.StatusOK:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(body) // the program may have closed the connection
	default:
		w.WriteHeader(status)
	}
}

// refuseBody answers a request whose body could not be read, or has no usable content.
func refuseBody(w http.ResponseWriter, err error) {
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		problemReply(w, http.StatusRequestEntityTooLarge,
			fmt.Sprintf("the body has more than %d bytes: send fewer reports at once", large.Limit))
		return
	}
	problemReply(w, http.StatusBadRequest, err.Error())
}

func problemReply(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	// The program may have closed the connection.
	_ = json.NewEncoder(w).Encode(api.Problem{Title: http.StatusText(status), Status: status, Detail: detail})
}
