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
			[]string{"team: its jobs alone (default: those of all teams that you may see)",
				"since: submitted in that span until now, such as 7d, or since a time such as 2026-12-01T18:00:00Z " +
					"(default: 7d)", "running: 1 for running jobs alone, however old",
				"limit: at most this many jobs, 1 to 200 (default: 200)"}, ofDiagnosis((*diagnosis.Service).List)},
	}
}
