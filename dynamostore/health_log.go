package dynamostore

import (
	"context"
	"log/slog"
)

// logChange logs the status and the problems if the status differs from the last one
// logged.
func (c *HealthCheck) logChange(ctx context.Context, h Health) {
	if h.Status == c.logged {
		return
	}
	c.logged = h.Status
	level := slog.LevelInfo
	switch h.Status {
	case HealthFail:
		level = slog.LevelError
	case HealthWarn:
		level = slog.LevelWarn
	case HealthPass, HealthUnknown:
	}
	var wrong []*Check
	for i := range h.Checks {
		if s := h.Checks[i].Status; s == HealthFail || s == HealthWarn {
			wrong = append(wrong, &h.Checks[i])
		}
	}
	c.opts.Log.Log(ctx, level, "the health of the idempotency store has changed", "health", string(h.Status), "detail", detailsOf(wrong))
}
