package openssh

import (
	"errors"
	"strings"
	"testing"
)

// explain adds the machine and advice to ssh's errors.
func TestExplain_AddsAdvice(t *testing.T) {
	o := &Host{Target: "ann@gpu1", Engine: "lab"}
	for complaint, fix := range map[string]string{
		"kex_exchange_identification: read: Connection reset by peer\nConnection reset by 10.0.0.1 port 22": "MaxStartups",
		"Received disconnect from 10.0.0.1: Too many authentication failures":                               "IdentitiesOnly yes",
		"ssh: connect to host gpu1 port 22: Connection refused":                                             "systemctl start ssh",
		"ann@gpu1: Permission denied (publickey).":                                                          "ssh-copy-id ann@gpu1",
		"ssh: connect to host gpu1 port 22: No route to host":                                               "is the machine up?",
	} {
		err := o.explain(errors.New("exit status 255"), complaint)
		if err == nil || !strings.HasPrefix(err.Error(), "ann@gpu1: ") || !strings.Contains(err.Error(), fix) {
			t.Errorf("%q: %v, want %q", complaint, err, fix)
		}
	}
}
