"""Linears, with the norm and ReLU behind them: products of tall tables with weights, narrow, wide, or over few rows."""
