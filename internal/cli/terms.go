package cli

import (
	"time"

	api "scrimp/client"
	"scrimp/internal/api/convert"
	"scrimp/internal/core"
	"scrimp/internal/market"
	"scrimp/internal/policy"
	jobterms "scrimp/internal/server/terms"
	"scrimp/internal/spec"
)

func terms(j spec.Job, now time.Time, stretch func(time.Duration) time.Duration) core.Terms {
	return jobterms.Of(j, now, stretch)
}

func hazards(m api.Market) map[market.OfferID]policy.Hazard {
	h := map[market.OfferID]policy.Hazard{}
	for _, l := range m.Offers {
		h[market.OfferID(l.Offer.ID)] = convert.To[policy.Hazard](l.Hazard)
	}
	return h
}
