package show_test

import (
	"testing"
	"time"

	api "scrimp/client"
	"scrimp/internal/cli/show"
	"scrimp/internal/lib/money"
	"scrimp/internal/test/golden"
)

func TestUndecided_ListsMachines(t *testing.T) {
	cost, more := amount("1.377"), amount("40.1")
	list := []api.Undecided{
		{Instance: "i-489931-4", Offer: "aws/us-east-1a/p3.2xlarge/spot", Job: "train-lm", Since: now.Add(-90 * time.Minute),
			Cost: &cost, Currency: money.USD},
		{Instance: "i-stray", Offer: "gcp/europe-west4-a/a2-highgpu-1g/spot", Since: now.Add(-30 * time.Hour),
			Cost: &more, Currency: money.USD},
		{Instance: "i-489931-5", Offer: "aws/us-east-1a/p3.2xlarge/spot", Job: "train-vit", Ended: true},
	}
	people := show.Place{Width: 80, Now: now}
	for name, text := range map[string]string{
		"undecided.120": show.Undecided(list, show.Place{Width: 120, Now: now}), "undecided.80": show.Undecided(list, people),
		"undecided.piped": show.Undecided(list, show.Place{}), "undecided-none.80": show.Undecided(nil, people),
		"adopted.80": show.Decided(list, true, people), "released.80": show.Decided(list, false, people),
		"waiting.80": show.Waiting(1) + "\n" + show.Waiting(2) + "\n",
	} {
		golden.Check(t, name+".txt", text)
	}
}
