"""From a fitted model to what a runtime loads: conversion, quantisation, and the proof of what is executed."""
