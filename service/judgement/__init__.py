"""What was measured, held against what a scenario needs; and what the gap costs. PURE."""
