package waste

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"scrimp/internal/lib/money"
	"scrimp/internal/lib/size"
	"scrimp/internal/market/resource"
)

// Seen is a resource of an engine's account that lacks tags or that nothing uses.
type Seen struct {
	Engine   string
	Resource resource.Resource
	Monthly  *money.Amount // at its present price, for 30 days; nil: unknown
	Lacks    []string      // required tags; "any tag" where none is required and it has none
	Evidence string
	Action   Action
	// Try changes nothing, and Command does it; both are empty if scrimp knows none.
	Try, Command string
}

// anyTag stands for the lacking tags of a resource without tags, where no tag is required.
const anyTag = "any tag"

// Survey returns the resources of an engine that lack a required tag, volumes of stopped machines, and volumes without
// a machine: the dearest first, those with an unknown price last. Kind is the engine's.
func Survey(engine, kind string, list []resource.Resource, required []string) (seen []Seen) {
	stopped := map[string]bool{}
	for _, r := range list {
		stopped[r.ID] = r.Kind == resource.Machine && r.Stopped
	}
	for _, r := range list {
		s := Seen{Engine: engine, Resource: r, Monthly: month(&r), Lacks: lacks(r.Tags, required), Action: Keep}
		var why []string
		switch {
		case r.Kind == resource.Volume && r.On == "":
			s.Action, why = Delete, append(why, "no machine has it")
		case r.Kind == resource.Volume && stopped[r.On]:
			s.Action, why = Delete, append(why, "its machine "+r.On+" is stopped")
		case r.Kind == resource.Machine && r.Stopped:
			why = append(why, "it is stopped, and costs nothing besides its volumes")
		}
		if len(s.Lacks) > 0 {
			why = append(why, "it lacks "+strings.Join(s.Lacks, ", "))
		}
		if s.Action == Keep && len(s.Lacks) == 0 {
			continue
		}
		s.Evidence = strings.Join(why, "; ")
		if kind == "aws" {
			s.Try, s.Command = onAWS(&s)
		}
		seen = append(seen, s)
	}
	SortSeen(seen)
	return seen
}

// SortSeen puts the dearest first, and those with an unknown price last.
func SortSeen(list []Seen) {
	slices.SortStableFunc(list, func(a, b Seen) int {
		return cmp.Or(-known(a.Monthly).Cmp(known(b.Monthly)), cmp.Compare(a.Engine, b.Engine),
			cmp.Compare(a.Resource.ID, b.Resource.ID))
	})
}

// month returns what 30 days of a resource cost; nil: unknown, or nothing of its own.
func month(r *resource.Resource) *money.Amount {
	switch {
	case r.Kind == resource.Machine && r.Hourly != nil && !r.Stopped:
		return new(r.Hourly.Until(Month))
	case r.Kind == resource.Volume && r.GigabyteMonth != nil:
		return new(r.GigabyteMonth.Times(int(r.Size / size.GiB)).Until(time.Hour)) // the rate of a month, once
	}
	return nil
}

// lacks returns the required tags that are missing or empty. Where none is required, a resource lacks anyTag if it has
// none besides its name and those of its provider.
func lacks(tags map[string]string, required []string) (missing []string) {
	named := map[string]bool{}
	for k, v := range tags {
		if k = strings.ToLower(k); v != "" && k != "name" && !strings.HasPrefix(k, "aws:") {
			named[k] = true
		}
	}
	if len(required) == 0 && len(named) == 0 {
		return []string{anyTag}
	}
	for _, name := range required {
		if !named[strings.ToLower(name)] {
			missing = append(missing, name)
		}
	}
	return missing
}

// onAWS returns the commands of the AWS command line. Ids and regions are those that AWS gave, of letters, digits and
// hyphens.
func onAWS(s *Seen) (try, command string) {
	r := &s.Resource
	if s.Action == Delete {
		command = fmt.Sprintf("aws ec2 delete-volume --region %s --volume-id %s", r.Region, r.ID)
		return command + " --dry-run", command
	}
	var tags []string
	for _, name := range s.Lacks {
		if name == anyTag {
			name = "team"
		}
		if strings.ContainsAny(name, " '\"\\$`,=;&|<>()") {
			return "", ""
		}
		tags = append(tags, "Key="+name+",Value=NAME")
	}
	command = fmt.Sprintf("aws ec2 create-tags --region %s --resources %s --tags %s", r.Region, r.ID,
		strings.Join(tags, " "))
	return command + " --dry-run", command
}
