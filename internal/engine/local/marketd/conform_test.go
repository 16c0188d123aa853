package marketd

import (
	"slices"
	"testing"

	"scrimp/internal/test/enginetest"
)

// The market passes the conformance tests with its real daemon, and its documentation page lists the cases.
func TestDriver_Conforms(t *testing.T) {
	cases := enginetest.Cases()
	results := make([]enginetest.Result, len(cases))
	t.Run("cases", func(t *testing.T) {
		for n, held := range cases {
			t.Run(held.Name, func(t *testing.T) {
				t.Parallel()
				results[n] = enginetest.Result{Case: held.Name, Skipped: "failed"}
				c := newCloud(t, testTrace(3600))
				results[n].Skipped = held.Hold(t, enginetest.Rig{
					Driver: c, Granted: always, Empty: never, Fails: fleeing,
					Restart: func(testing.TB) { c.kill(); c.start() },
					Foreign: func(t testing.TB) string { return newCloud(t, testTrace(60)).launch("a.1", always).ID },
				})
			})
		}
	})
	results = slices.DeleteFunc(results, func(r enginetest.Result) bool { return r.Case == "" }) // not selected by -run
	enginetest.Page(t, "../../../../docs/engines/local.md", results)
}
