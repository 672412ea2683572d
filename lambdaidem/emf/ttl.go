package emf

// TTL writes the metric TTLDisabled, with the dimensions [service, function]: 0 if the
// table's TTL is enabled, 1 if it is not. A table without TTL grows forever and keeps
// data that should have been deleted.
func (o *Observer) TTL(enabled bool) {
	disabled := int64(1)
	if enabled {
		disabled = 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.write(o.clock(), nil, []measured{{ttlDisabled, disabled}})
}
