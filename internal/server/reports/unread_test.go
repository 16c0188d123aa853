package reports

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"scrimp/internal/test/must"
	"scrimp/internal/view/projection"
	"scrimp/internal/wire/api"
)

// A figure that is still being built from the log gives status 503 and the progress.
func TestUnread_SaysWhatIsBeingBuilt(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	Unread(w, "no receipt", fmt.Errorf("read: %w", &projection.BehindError{Name: "job-events", At: 20, Of: 50}))
	var p api.Problem
	must.Do(t, json.Unmarshal(w.Body.Bytes(), &p))
	if w.Code != http.StatusServiceUnavailable || !strings.Contains(p.Detail, "job-events") ||
		!strings.Contains(p.Detail, "20 of 50 events") || p.Fix == "" {
		t.Errorf("%d %+v; want 503 with the progress and what to do", w.Code, p)
	}
}
