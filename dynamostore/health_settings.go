package dynamostore

import (
	"context"
)

// checkSettings checks the table's settings, such as TTL and status, because the other checks
// overlook most problems with the settings. It ignores the problems that CheckTable reports as
// warnings, such as a table in several Regions: a health check should not alert about a choice
// that was made when the table was created.
func (c *HealthCheck) checkSettings(ctx context.Context) Check {
	found := Check{Status: HealthPass}
	var wrong TableProblems
	for _, p := range checkShape(ctx, c.client, c.store.table, &c.store.opts, len(c.opts.Enlisted) > 0) {
		status := HealthFail
		switch {
		case p.Warning:
			continue
		case p.Code == NoPermission, p.Code == CheckFailed, p.Code == TimedOut, p.Code == Unreachable:
			if len(wrong) > 0 { // checkShape makes this call after the one that has found the problems
				continue
			}
			return Check{Status: HealthUnknown, Code: p.Code, Detail: p.Detail, Err: p.Err}
		case p.Code == TTLOff, p.Code == TTLWrongAttribute:
			status = HealthWarn
		}
		if worst := worse(found.Status, status); worst != found.Status {
			found.Status, found.Code = worst, p.Code
		}
		wrong = append(wrong, p)
	}
	if len(wrong) > 0 {
		found.Detail, found.Err = wrong.Error(), wrong
	}
	return found
}

// settingsCheck is the Check.Name of the check that reads the table's settings. This check makes
// several calls, so it is not named after one IAM action.
const settingsCheck = "settings"
