package interactive

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"
)

// Limits of a question to Jupyter.
const (
	askLimit  = 2 * time.Second
	mostReply = 1 << 20
)

// kernelBusy reports whether a kernel of the notebook runs a cell. A notebook that does not answer is not busy; the
// processors that it uses count anyway.
func (s *Seat) kernelBusy(ctx context.Context) bool {
	if s.address == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/api/kernels", nil)
	if err != nil {
		return false
	}
	r.Header.Set("Authorization", "token "+s.token)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return false
	}
	defer func() { _ = answer.Body.Close() }()
	var kernels []struct {
		State string `json:"execution_state"`
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, mostReply)).Decode(&kernels)
	for _, k := range kernels {
		if k.State == "busy" {
			return err == nil
		}
	}
	return false
}
