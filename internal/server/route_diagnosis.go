package server

import (
	"scrimp/client"
	"scrimp/internal/lib/identity"
	"scrimp/internal/server/diagnosis"
)

// diagnosisRoutes name the causes of poor machine use.
func diagnosisRoutes() []route {
	return []route{
		{"GET", "/v1/jobs/{id}/diagnosis", identity.Viewer, ofJob, true,
			"Name what makes a job use its machines badly, and what to change; at most 30 s old", nil, client.Diagnosis{}, "",
			nil, ofDiagnosis((*diagnosis.Service).Get)},
		{"POST", "/v1/jobs/{id}/diagnosis", identity.Viewer, ofJob, true,
			"Diagnose a job also from the profiles of a profiler; nothing is stored", client.DiagnoseWith{}, client.Diagnosis{},
			"", nil, ofDiagnosis((*diagnosis.Service).Post)},
		{"GET", "/v1/diagnoses", identity.Viewer, anyTeam, true,
			"Diagnose the newest jobs, newest first", nil, []client.Diagnosis{}, "",
			[]string{"team: its jobs alone; those of all teams that you may see where it is not given",
				"since: submitted in that span until now, such as 7d, or since a time such as 2026-12-01T18:00:00Z; 7d where it " +
					"is not given", "running: 1 for running jobs alone, however old", "limit: jobs at most, 1 to 200; 200 where " +
					"it is not given"}, ofDiagnosis((*diagnosis.Service).List)},
	}
}
