package convert

import (
	"reflect"

	"scrimp/client"
	"scrimp/internal/decide/budget"
	"scrimp/internal/decide/core"
	"scrimp/internal/decide/ledger"
	"scrimp/internal/decide/plan"
	"scrimp/internal/decide/policy"
	"scrimp/internal/decide/receipt"
	"scrimp/internal/decide/review"
	"scrimp/internal/decide/runhistory"
	"scrimp/internal/lib/identity"
	"scrimp/internal/market"
	"scrimp/internal/work/diagnose"
	"scrimp/internal/work/diagnose/profile"
)

// specials are pairs in which one type encodes itself as text.
var specials = map[pair]copier{
	{reflect.TypeFor[client.Role](), reflect.TypeFor[identity.Role]()}: func(to, from reflect.Value) {
		to.SetString(identity.Role(from.Int()).String())
	},
	{reflect.TypeFor[identity.Role](), reflect.TypeFor[client.Role]()}: func(to, from reflect.Value) {
		role, _ := identity.ParseRole(from.String()) // an unknown name gives no rights
		to.SetInt(int64(role))
	},
}

// Pairs lists the convertible types, the wire type first.
var Pairs = [][2]reflect.Type{
	of[client.Choice, plan.Decision](),
	of[client.Diagnosis, diagnose.Report](),
	of[client.DataUse, receipt.DataUse](),
	of[client.EstimateError, runhistory.Missed](),
	of[client.EstimatePair, runhistory.Pair](),
	of[client.Grant, identity.Grant](),
	of[client.Hash, ledger.Hash](),
	of[client.Hazard, policy.Hazard](),
	of[client.Limit, budget.Limit](),
	of[client.LimitUse, budget.Use](),
	of[client.Offer, market.Offer](),
	of[client.Outlook, budget.Outlook](),
	of[client.Profile, profile.Profile](),
	of[client.Quote, market.Quote](),
	of[client.Receipt, receipt.Receipt](),
	of[client.ReviewMark, review.Mark](),
	of[client.ReviewSum, review.Sum](),
	of[client.Role, identity.Role](),
	of[client.Run, runhistory.Run](),
	of[client.Spender, budget.Spender](),
	of[client.Terms, core.Terms](),
	of[client.Threshold, budget.Threshold](),
	of[client.Trace, market.Trace](),
}

func of[Wire, Program any]() [2]reflect.Type {
	return [2]reflect.Type{reflect.TypeFor[Wire](), reflect.TypeFor[Program]()}
}
