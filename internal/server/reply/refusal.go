package reply

import (
	"net/http"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/view/convert"
)

// Refusal is what is wrong with a request.
type Refusal struct {
	Status            int
	Field, Title, Fix string
	Code              client.Code // "": none that a program acts on
	Err               error
	Limit             *budget.Refusal // nil: it is no limit that refuses
	Line              int             // of a job file that was sent as text
	Problems          []client.JobProblem
}

// Answer sends the problem.
func (n *Refusal) Answer(w http.ResponseWriter) {
	p := problem(n.Status, n.Field, n.Title, n.Fix, n.Err)
	p.Code, p.Line, p.Problems = n.Code, n.Line, n.Problems
	if n.Limit != nil {
		p.Limit, p.Use = convert.To[*client.Limit](&n.Limit.Limit), convert.To[*client.LimitUse](&n.Limit.Use)
	}
	if p.Limit != nil { // its webhook's address may hold a secret, and who is refused need not know where it leads
		p.Limit.Notify = ""
	}
	tellProblem(w, p)
}
