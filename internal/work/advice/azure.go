package advice

import (
	"slices"
	"strings"
	"time"

	"scrimp/internal/work/waste"
)

// year is Azure's year.
const year = 365 * 24 * time.Hour

// advisor converts a row of Azure Advisor. Recommendations of other categories save no cost.
func advisor(t *table) (r Recommendation, ok bool, err error) {
	if !strings.EqualFold(t.get("category"), "cost") {
		return r, false, nil
	}
	r = Recommendation{Source: "Azure Advisor", Resource: Last(t.get("resourcename", "impactedresource", "resourceid")),
		Type: t.get("resourcetype", "type"), Advice: t.get("recommendation"), Action: waste.Keep}
	err = r.saves(strings.ReplaceAll(t.get("potentialannualcostsavings"), ",", ""),
		t.get("potentialcostsavingscurrency", "currency"), year)
	text := strings.ToLower(r.Advice)
	says := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
	}
	group, kind := t.get("resourcegroup"), strings.ToLower(r.Type)
	tail := " --resource-group " + group + " --name " + r.Resource + " --subscription " + t.get("subscriptionid")
	words := []string{group, r.Resource, t.get("subscriptionid")}
	vm := strings.Contains(kind, "virtual machine") || strings.HasSuffix(kind, "virtualmachines")
	disk := strings.HasSuffix(kind, "disks") || strings.HasSuffix(kind, "disk")
	switch {
	case says("reserved", "reservation", "savings plan"):
		r.buys()
		return r, true, err
	case vm && says("right-size", "resize"):
		r.Action = waste.Shrink
		r.does("az vm list-vm-resize-options"+tail, "az vm resize --size SIZE"+tail, words...)
	case vm && says("shutdown", "shut down", "stop"):
		r.Action = waste.Stop
		r.does("az vm show --show-details"+tail, "az vm deallocate"+tail, words...)
	case disk && says("delete", "unattached", "unused"):
		r.Action = waste.Delete
		r.does("az disk show"+tail, "az disk delete"+tail, words...)
	case says("delete", "idle", "unused"):
		r.Action = waste.Delete
		r.byHand()
	default:
		r.byHand()
	}
	return r, true, err
}
