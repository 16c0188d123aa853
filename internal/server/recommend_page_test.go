package server

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"scrimp/client"
	"scrimp/internal/decide/core"
	"scrimp/internal/lib/identity"
)

// The page shows each figure of the API to the last digit. An operator takes a recommendation with its button and then
// finds it among those that were taken; a viewer has no button.
func TestRecommendPage_ShowsAndTakesWhatTheAPISays(t *testing.T) {
	t.Parallel()
	w := newWorldOf(t, &firm{}, func(o *Options) { o.Rate = 1e6 })
	empty := w.signedIn(w.user("ann", identity.Grant{Team: "*", Role: identity.Admin}))
	empty.shows("/recommend", 200, "Nothing was spent in the last 30 days")
	w.idles(8 * time.Hour)
	ops := w.signedIn(w.user("ops", identity.Grant{Team: "team-0", Role: identity.Operator}))
	vic := w.signedIn(w.user("vic", identity.Grant{Team: "team-0", Role: identity.Viewer}))
	var plans []client.SavingsPlan
	w.must("GET", "/v1/recommend?team=team-0&target=10%25", nil, &plans)
	text := ops.shows("/recommend?team=team-0&target=10%25", 200, "scrimp recommend --target 10% --team team-0", "Take idle stop",
		"scrimp recommend --take &#39;idle stop&#39; --team team-0", "/data/recommend?target=10%25&amp;team=team-0")
	for _, r := range plans[0].Recommendations {
		for _, a := range []any{r.Saving, r.Alone} {
			if want := fmt.Sprintf(`value="%v"`, a); !strings.Contains(want, "<nil>") && !strings.Contains(text, want) {
				t.Errorf("%s: the page lacks %s", r.Name, want)
			}
		}
	}
	for _, a := range []any{plans[0].Spent, plans[0].Target, plans[0].Reached} {
		if want := fmt.Sprintf(`value="%v"`, a); !strings.Contains(text, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	if text := vic.shows("/recommend?team=team-0", 200, "idle stop"); strings.Contains(text, `value="take"`) {
		t.Error("a viewer gets a button")
	}
	if text := ops.shows("/recommend", 200, "idle stop"); strings.Contains(text, `value="take"`) {
		t.Error("an operator of one team gets the button of all teams")
	}
	form := url.Values{"act": {"take"}, "job": {"idle stop"}, "team": {"team-0"}, "currency": {string(plans[0].Currency)},
		"back": {"/recommend?team=team-0"}}
	if rec := vic.ask("POST", "/do", form); rec.Code != 403 {
		t.Errorf("a viewer takes it: %d", rec.Code)
	}
	if rec := ops.ask("POST", "/do", form); rec.Code != 303 || rec.Header().Get("Location") != "/recommend?team=team-0" {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	w.event(core.Tick{}, 100*time.Hour)
	text = ops.shows("/recommend?team=team-0", 200, "by ops", "an hour of useful machine time")
	if strings.Contains(text, `value="idle stop"`) {
		t.Error("it can be taken twice")
	}
	var list []client.TakenRecommendation
	w.must("GET", "/v1/recommend/taken?team=team-0", nil, &list)
	if want := fmt.Sprintf(`value="%v"`, list[0].Expected); len(list) != 1 || list[0].Expected == nil || !strings.Contains(text, want) {
		t.Errorf("%+v: the page lacks the expected saving", list)
	}
	ops.shows("/costs", 200, `href="/recommend"`)
	ops.shows("/recommend?target=0%25", 400)
}
