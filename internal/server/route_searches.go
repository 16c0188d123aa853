package server

import (
	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/searches"
)

// searchRoutes serve searches whose trials a user's own program trains. The audit trail has who opens and removes a
// search, but no question and no value: a search keeps those itself, and there is one for each epoch.
func searchRoutes() []route {
	return []route{
		{"POST", "/v1/searches", identity.Submitter, anyTeam, false,
			"Open a search whose trials your own program trains; the same name and definition again changes nothing",
			client.NewSearch{}, client.Search{}, "", nil, ofSearches((*searches.Service).Open)},
		{"GET", "/v1/searches", identity.Viewer, anyTeam, true, "List the searches of users' own programs, by name", nil,
			[]client.Search{}, "", nil, ofSearches((*searches.Service).List)},
		{"GET", "/v1/searches/{id}", identity.Viewer, anyTeam, true, "Show a search with its best trial", nil,
			client.Search{}, "", nil, ofSearches((*searches.Service).Get)},
		{"GET", "/v1/searches/{id}/trials", identity.Viewer, anyTeam, true,
			"List the trials of a search, in the order in which they were chosen", nil, []client.SearchTrial{}, "", nil,
			ofSearches((*searches.Service).Trials)},
		{"POST", "/v1/searches/{id}/ask", identity.Submitter, anyTeam, true,
			"Ask what a worker trains next; the same trial until it is over, however often it asks", client.AskTrial{},
			client.SearchAnswer{}, "", nil, ofSearches((*searches.Service).Ask)},
		{"POST", "/v1/searches/{id}/tell", identity.Submitter, anyTeam, true,
			"Tell the value of a trial's metric, and hear whether it goes on; the same value again changes nothing",
			client.TellTrial{}, client.SearchAnswer{}, "", nil, ofSearches((*searches.Service).Told)},
		{"DELETE", "/v1/searches/{id}", identity.Submitter, anyTeam, false, "Remove a search with its trials", nil, nil, "",
			nil, ofSearches((*searches.Service).Remove)},
	}
}

// searchCallRoute passes on what the program of a job asks and tells.
func searchCallRoute() route {
	return route{"POST", "/v1/agent/search", 0, attempts, true,
		"Open a search, ask it or tell it a value, for the program of the job", client.SearchCall{}, client.SearchAnswer{},
		"", nil, ofSearches((*searches.Service).Call)}
}
