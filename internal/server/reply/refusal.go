package reply

import (
	"net/http"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/view/convert"
)

// Refusal describes what is wrong with a request.
type Refusal struct {
	Status            int
	Field, Title, Fix string
	Code              client.Code // "": no code for programs
	Err               error
	Limit             *budget.Refusal // nil: no limit refused it
	Line              int             // line in a job file sent as text
	Problems          []client.JobProblem
}

// Answer sends the refusal as a problem.
func (n *Refusal) Answer(w http.ResponseWriter) {
	p := problem(n.Status, n.Field, n.Title, n.Fix, n.Err)
	p.Code, p.Line, p.Problems = n.Code, n.Line, n.Problems
	if n.Limit != nil {
		p.Limit, p.Use = convert.To[*client.Limit](&n.Limit.Limit), convert.To[*client.LimitUse](&n.Limit.Use)
	}
	if p.Limit != nil { // the address of the limit's webhook may contain a secret and is not the caller's concern
		p.Limit.Notify = ""
	}
	tellProblem(w, p)
}
